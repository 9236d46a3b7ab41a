// SentencePiece's model file (message ModelProto of sentencepiece_model.proto): the fields that encoding and decoding
// need. Absent fields have the defaults of the .proto file.
//
//   ModelProto      pieces = 1 (repeated), trainer_spec = 2, normalizer_spec = 3, self_test_data = 4,
//                   denormalizer_spec = 5
//   SentencePiece   piece = 1 string, score = 2 float, type = 3 enum
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/piece_type.h"

namespace tokamak {

enum class ModelType : int { kUnigram = 1, kBpe = 2, kWord = 3, kChar = 4 };

const char* name_of(ModelType type);  // "bpe"; "unknown" for any other number

struct Piece {
  std::string text;
  float score = 0;
  PieceType type = PieceType::kNormal;
};

struct TrainerSpec {
  bool present = false;
  ModelType model_type = ModelType::kUnigram;
  int32_t vocab_size = 8000;
  float character_coverage = 0.9995f;
  bool split_digits = false;
  bool treat_whitespace_as_suffix = false;
  bool byte_fallback = false;
  std::string bos_piece = "<s>";
  std::string eos_piece = "</s>";
  std::string unk_surface = " \xE2\x81\x87 ";  // what <unk> decodes to
};

struct NormalizerSpec {
  bool present = false;
  std::string name;
  std::string precompiled_charsmap;  // empty: identity
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
};

struct ModelProto {
  std::vector<Piece> pieces;
  TrainerSpec trainer;
  NormalizerSpec normalizer;
  NormalizerSpec denormalizer;
  // The piece of type unknown, and the control pieces that `trainer` names; -1: there is none.
  int32_t unk_id = -1, bos_id = -1, eos_id = -1;
};

// Error(kData) if `bytes` are not a ModelProto; `source` names the file in the error.
ModelProto parse_model_proto(std::string_view bytes, const std::string& source);

// Error(kData) naming the first thing in the model that this module does not reproduce exactly as SentencePiece would,
// or that SentencePiece itself would refuse to load.
void check_supported(const ModelProto& model, const std::string& source);

// The byte of a byte piece "<0x0A>"; -1 for any other piece.
int byte_of_piece(std::string_view piece);

}  // namespace tokamak
