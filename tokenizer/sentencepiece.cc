#include "tokenizer/sentencepiece.h"

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "tokenizer/normalize.h"

namespace tokamak {

CompiledModel::CompiledModel(ModelProto model)
    : proto(std::move(model)), user_symbols(proto.pieces), rules(proto.pieces) {
  byte_ids.fill(-1);
  for (size_t i = 0; i < proto.pieces.size(); ++i) {
    const Piece& piece = proto.pieces[i];
    if (piece.type == PieceType::kByte) byte_ids[byte_of_piece(piece.text)] = static_cast<int32_t>(i);
  }
}

namespace {

std::string with_spaces(std::string_view piece) {
  std::string text;
  for (size_t at = 0; at < piece.size();) {
    const size_t space = piece.find(kSpaceSymbol, at);
    text.append(piece.substr(at, space - at));  // npos - at: to the end
    if (space == std::string_view::npos) break;
    text += ' ';
    at = space + kSpaceSymbol.size();
  }
  return text;
}

// A run of byte pieces is decoded as UTF-8; each invalid byte becomes U+FFFD.
void append_bytes(std::string_view bytes, std::string& text) {
  while (!bytes.empty()) {
    const Utf8Char c = decode_utf8(bytes);
    text.append(c.code == kInvalidUtf8 ? kReplacementChar : bytes.substr(0, static_cast<size_t>(c.length)));
    bytes.remove_prefix(c.length);
  }
}

}  // namespace

std::unique_ptr<SentencePieceTokenizer> load_sentencepiece(const std::string& path) {
  const std::string bytes = read_text(path, Kind::kData);
  ModelProto proto = parse_model_proto(bytes, path);
  check_supported(proto, path);
  TokenizerInfo info{
      path,        xxh3_128_hex(std::as_bytes(std::span(bytes))), std::ssize(proto.pieces), proto.unk_id, proto.bos_id,
      proto.eos_id};
  return std::make_unique<SentencePieceTokenizer>(std::move(info), CompiledModel(std::move(proto)));
}

// The dummy prefix is removed from the first visible piece; control pieces before it are ignored.
std::string SentencePieceTokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  std::string bytes;  // bytes of the pending byte pieces
  bool at_start = model_.proto.normalizer.add_dummy_prefix;
  for (const int32_t id : ids) {
    std::string_view piece = this->piece(id);
    const PieceType type = model_.proto.pieces[id].type;
    if (type == PieceType::kByte) {
      bytes += static_cast<char>(byte_of_piece(piece));
      continue;
    }
    append_bytes(bytes, text);
    bytes.clear();
    if (!text.empty()) at_start = false;
    if (type == PieceType::kControl) continue;
    if (type == PieceType::kUnknown) {
      text += model_.proto.trainer.unk_surface.c_str();  // up to a NUL, like SentencePiece
      continue;
    }
    if (at_start && piece.substr(0, kSpaceSymbol.size()) == kSpaceSymbol) {
      piece.remove_prefix(kSpaceSymbol.size());
      at_start = false;
    }
    text += with_spaces(piece);
  }
  append_bytes(bytes, text);
  return text;
}

}  // namespace tokamak
