#include "tokenizer/sentencepiece.h"

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/printable.h"
#include "base/run_files.h"
#include "base/utf8.h"
#include "tokenizer/normalize.h"

namespace tokamak {

// Without a piece for it, a space becomes the three bytes of U+2581. A symbol that has one is not written so in texts.
CompiledModel::CompiledModel(ModelProto model, const std::string& source)
    : proto(std::move(model)),
      user_symbols(proto.pieces),
      rules(proto.pieces, source),
      rewrites_spaces(!rules.is_piece(rules.symbol(' ')) || user_symbols.have_spaces()) {
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

// Moves the first character of `bytes` to `text`; an invalid byte becomes U+FFFD.
void move_character(std::string& bytes, std::string& text) {
  const Utf8Char c = decode_utf8(bytes);
  text.append(c.code == kInvalidUtf8 ? kReplacementChar : std::string_view(bytes).substr(0, c.length));
  bytes.erase(0, c.length);
}

// The dummy prefix is removed from the first visible piece; control pieces before it are ignored.
// Whether more bytes can make `bytes` a character.
bool may_grow(std::string bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  const size_t length = first < 0xC2 || first > 0xF4 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (bytes.size() >= length) return false;
  if (bytes.size() == 1) return true;
  bytes.resize(length, '\x80');
  return decode_utf8(bytes).code != kInvalidUtf8;
}

class SentencePieceStream final : public StreamDecoder {
 public:
  explicit SentencePieceStream(const SentencePieceTokenizer& tokenizer)
      : tokenizer_(tokenizer), at_start_(tokenizer.proto().normalizer.add_dummy_prefix) {}

  std::string push(int32_t id) override {
    std::string_view piece = tokenizer_.piece(id);
    const PieceType type = tokenizer_.proto().pieces[id].type;
    if (type == PieceType::kByte) {
      bytes_ += static_cast<char>(byte_of_piece(piece));
      std::string decided;
      while (!bytes_.empty() && !may_grow(bytes_)) move_character(bytes_, decided);
      if (!decided.empty()) at_start_ = false;
      return decided;
    }
    std::string text = finish();
    if (type == PieceType::kControl) return text;
    if (type == PieceType::kUnknown) {
      text += tokenizer_.proto().trainer.unk_surface.c_str();  // up to a NUL, like SentencePiece
    } else {
      if (at_start_ && piece.starts_with(kSpaceSymbol)) {
        piece.remove_prefix(kSpaceSymbol.size());
        at_start_ = false;
      }
      text += with_spaces(piece);
    }
    if (!text.empty()) at_start_ = false;
    return text;
  }

  std::string finish() override {
    std::string text;
    while (!bytes_.empty()) move_character(bytes_, text);
    if (!text.empty()) at_start_ = false;
    return text;
  }

 private:
  const SentencePieceTokenizer& tokenizer_;
  std::string bytes_;  // of the pending byte pieces
  bool at_start_;
};

}  // namespace

std::unique_ptr<SentencePieceTokenizer> load_sentencepiece(const std::string& path) {
  const std::string bytes = read_text(path, Kind::kData);
  ModelProto proto = parse_model_proto(bytes, path);
  check_supported(proto, path);
  TokenizerInfo info{
      path,        xxh3_128_hex(std::as_bytes(std::span(bytes))), std::ssize(proto.pieces), proto.unk_id, proto.bos_id,
      proto.eos_id};
  return std::make_unique<SentencePieceTokenizer>(std::move(info), CompiledModel(std::move(proto), path));
}

std::string SentencePieceTokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  SentencePieceStream stream(*this);
  for (const int32_t id : ids) text += stream.push(id);
  return text + stream.finish();
}

std::unique_ptr<StreamDecoder> SentencePieceTokenizer::make_stream_decoder() const {
  return std::make_unique<SentencePieceStream>(*this);
}

std::string SentencePieceTokenizer::copy_files(const std::string& directory) const {
  write_text_atomically(run_files::at(directory, run_files::kTokenizer), read_text(path(), Kind::kData), Kind::kData);
  return run_files::kTokenizer;
}

std::vector<std::pair<std::string, std::string>> SentencePieceTokenizer::settings() const {
  const auto yes_or_no = [](bool value) { return value ? "true" : "false"; };
  std::vector<std::string> symbols;
  for (const Piece& piece : proto().pieces) {
    if (piece.type == PieceType::kUserDefined) symbols.push_back(printable(piece.text));
  }
  return {{"type", name_of(proto().trainer.model_type)},
          {"byte_fallback", yes_or_no(proto().trainer.byte_fallback)},
          {"split_digits", yes_or_no(proto().trainer.split_digits)},
          {"add_dummy_prefix", yes_or_no(proto().normalizer.add_dummy_prefix)},
          {"character_coverage", str(proto().trainer.character_coverage)},
          {"user_defined_symbols", str(symbols.size(), symbols.empty() ? "" : ": ", join(symbols, " "))}};
}

}  // namespace tokamak
