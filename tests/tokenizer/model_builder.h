// Writes SentencePiece models by hand, valid or not: the counterpart of tokenizer/wire_reader.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/model_proto.h"

namespace tokamak {

std::string wire_varint(uint64_t value);
std::string wire_number(int64_t field, int64_t value);
std::string wire_float(int64_t field, float value);
std::string wire_bytes(int64_t field, std::string_view payload);

// A BPE model with Llama's settings; change what the test is about.
struct ModelBuilder {
  int model_type = 2;
  bool byte_fallback = false;
  bool treat_whitespace_as_suffix = false;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = false;
  bool escape_whitespaces = true;
  std::string charsmap;
  std::string denormalizer_charsmap;
  std::string more_trainer_fields;
  std::vector<Piece> pieces = {
      {"<unk>", 0, PieceType::kUnknown}, {"<s>", 0, PieceType::kControl}, {"</s>", 0, PieceType::kControl}};

  ModelBuilder& add(const std::string& text, float score = 0, PieceType type = PieceType::kNormal) {
    pieces.push_back({text, score, type});
    return *this;
  }
  ModelBuilder& add_bytes();  // the 256 byte pieces, and byte_fallback

  std::string pieces_part() const;
  std::string trainer_part() const;
  std::string normalizer_part() const;
  std::string build() const;                         // the file's bytes
  std::string write(const std::string& path) const;  // to a file; returns `path`
};

// Writes without syncing: for tests that write thousands of files.
std::string write_quickly(const std::string& path, std::string_view bytes);

}  // namespace tokamak
