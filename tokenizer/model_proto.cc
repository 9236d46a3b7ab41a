#include "tokenizer/model_proto.h"

#include <cmath>
#include <limits>
#include <unordered_set>

#include "base/error.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "tokenizer/wire_reader.h"

namespace tokamak {

namespace {

Piece parse_piece(WireReader reader) {
  Piece piece;
  while (reader.next()) {
    if (reader.field() == 1) piece.text = reader.bytes();
    if (reader.field() == 2) piece.score = reader.float32();
    if (reader.field() == 3) piece.type = static_cast<PieceType>(reader.int32());
  }
  return piece;
}

// Protobuf merges repeated messages, so these functions update existing structs.
void parse_trainer(WireReader reader, TrainerSpec& spec) {
  spec.present = true;
  while (reader.next()) {
    if (reader.field() == 3) spec.model_type = static_cast<ModelType>(reader.int32());
    if (reader.field() == 4) spec.vocab_size = reader.int32();
    if (reader.field() == 10) spec.character_coverage = reader.float32();
    if (reader.field() == 24) spec.treat_whitespace_as_suffix = reader.boolean();
    if (reader.field() == 25) spec.split_digits = reader.boolean();
    if (reader.field() == 35) spec.byte_fallback = reader.boolean();
    if (reader.field() == 44) spec.unk_surface = reader.bytes();
    if (reader.field() == 46) spec.bos_piece = reader.bytes();
    if (reader.field() == 47) spec.eos_piece = reader.bytes();
  }
}

void parse_normalizer(WireReader reader, NormalizerSpec& spec) {
  spec.present = true;
  while (reader.next()) {
    if (reader.field() == 1) spec.name = reader.bytes();
    if (reader.field() == 2) spec.precompiled_charsmap = reader.bytes();
    if (reader.field() == 3) spec.add_dummy_prefix = reader.boolean();
    if (reader.field() == 4) spec.remove_extra_whitespaces = reader.boolean();
    if (reader.field() == 5) spec.escape_whitespaces = reader.boolean();
  }
}

[[noreturn]] void refuse(const std::string& source, const std::string& what, const std::string& hint = "") {
  fail(Kind::kData, str("tokenizer model ", source, " ", what), hint);
}

std::string quoted(const std::string& piece) { return str("'", printable(piece), "'"); }

const char* const kRetrain = "train a model with: tokamak tokenizer train";

void check_specs(const ModelProto& model, const std::string& source) {
  if (!model.trainer.present || !model.normalizer.present) {
    refuse(source, str("has no ", model.trainer.present ? "normalizer_spec" : "trainer_spec"),
           "the file is cut short, or not a SentencePiece model");
  }
  if (model.trainer.model_type != ModelType::kBpe) {
    refuse(source, str("is a model of type ", name_of(model.trainer.model_type), "; only bpe is supported"), kRetrain);
  }
  if (model.trainer.treat_whitespace_as_suffix) {
    refuse(source, "has treat_whitespace_as_suffix=true, which is not supported", kRetrain);
  }
  if (!model.normalizer.precompiled_charsmap.empty()) {
    refuse(source, str("rewrites text with the normaliser '", model.normalizer.name, "'; only identity is supported"),
           kRetrain);
  }
  if (model.normalizer.remove_extra_whitespaces) {
    refuse(source, "has remove_extra_whitespaces=true, which is not supported: it would lose spaces", kRetrain);
  }
  if (!model.normalizer.escape_whitespaces) {
    refuse(source, "has escape_whitespaces=false, which is not supported", kRetrain);
  }
  if (!model.denormalizer.precompiled_charsmap.empty()) {
    refuse(source, "rewrites decoded text with a denormaliser, which is not supported", kRetrain);
  }
}

void check_piece(const ModelProto& model, size_t id, const std::string& source) {
  const Piece& piece = model.pieces[id];
  const auto bad = [&](const std::string& what, const std::string& hint = "") {
    refuse(source, str("has piece ", id, " ", quoted(piece.text), " ", what), hint);
  };
  if (piece.text.empty()) bad("which is empty");
  if (!is_valid_utf8(piece.text)) bad("which is not UTF-8");
  if (!std::isfinite(piece.score)) bad(str("with score ", piece.score));
  const bool one_char = decode_utf8(piece.text).length == std::ssize(piece.text);
  switch (piece.type) {
    case PieceType::kNormal:
    case PieceType::kUnknown:
      return;
    case PieceType::kControl:
      if (one_char) bad("which is a control symbol of one character: SentencePiece cannot encode it");
      return;
    case PieceType::kUserDefined:
      if (piece.text.find('\0') != std::string::npos) bad("which is a user-defined symbol with a NUL byte");
      return;
    case PieceType::kUnused:
      bad("marked unused, which is not supported", "save the model without a restriction");
      return;
    case PieceType::kByte:
      if (!model.trainer.byte_fallback) bad("which stands for a byte, although byte_fallback is false");
      if (byte_of_piece(piece.text) < 0) bad("marked as a byte, but not written like <0x0A>");
      return;
  }
  bad(str("of unknown type ", static_cast<int>(piece.type)));
}

}  // namespace

const char* name_of(ModelType type) {
  constexpr const char* kNames[] = {"unigram", "bpe", "word", "char"};
  return type >= ModelType::kUnigram && type <= ModelType::kChar ? kNames[static_cast<int>(type) - 1] : "unknown";
}

const char* name_of(PieceType type) {
  constexpr const char* kNames[] = {"normal", "unknown", "control", "user_defined", "unused", "byte"};
  return type >= PieceType::kNormal && type <= PieceType::kByte ? kNames[static_cast<int>(type) - 1] : "unknown";
}

int byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || piece.substr(0, 3) != "<0x" || piece[5] != '>') return -1;
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const size_t high = kDigits.find(piece[3]);
  const size_t low = kDigits.find(piece[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return -1;
  return static_cast<int>(16 * high + low);
}

ModelProto parse_model_proto(std::string_view bytes, const std::string& source) {
  ModelProto model;
  WireReader reader(bytes, source);
  while (reader.next()) {
    if (reader.field() == 1) model.pieces.push_back(parse_piece(reader.message()));
    if (reader.field() == 2) parse_trainer(reader.message(), model.trainer);
    if (reader.field() == 3) parse_normalizer(reader.message(), model.normalizer);
    if (reader.field() == 5) parse_normalizer(reader.message(), model.denormalizer);
  }
  if (model.trainer.bos_piece.empty()) model.trainer.bos_piece = TrainerSpec{}.bos_piece;
  if (model.trainer.eos_piece.empty()) model.trainer.eos_piece = TrainerSpec{}.eos_piece;
  for (int32_t id = 0; id < std::ssize(model.pieces); ++id) {
    const Piece& piece = model.pieces[id];
    if (piece.type == PieceType::kUnknown) model.unk_id = id;
    if (piece.type == PieceType::kControl && piece.text == model.trainer.bos_piece) model.bos_id = id;
    if (piece.type == PieceType::kControl && piece.text == model.trainer.eos_piece) model.eos_id = id;
  }
  return model;
}

void check_supported(const ModelProto& model, const std::string& source) {
  check_specs(model, source);
  if (model.pieces.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max() / 4)) {
    refuse(source, str("has ", model.pieces.size(), " pieces"));
  }
  std::unordered_set<std::string_view> seen;
  int64_t unknowns = 0;
  int64_t bytes = 0;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    check_piece(model, id, source);
    const Piece& piece = model.pieces[id];
    if (!seen.insert(piece.text).second)
      refuse(source, str("has the piece ", quoted(piece.text), " twice, again as id ", id));
    unknowns += piece.type == PieceType::kUnknown ? 1 : 0;
    bytes += piece.type == PieceType::kByte ? 1 : 0;
  }
  if (unknowns != 1) refuse(source, str("has ", unknowns, " pieces of type unknown (<unk>) instead of one"));
  if (model.trainer.byte_fallback && bytes != 256) {
    refuse(source, str("has byte_fallback=true, but ", bytes, " of the 256 byte pieces"));
  }
}

}  // namespace tokamak
