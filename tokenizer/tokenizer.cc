#include "tokenizer/tokenizer.h"

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "tokenizer/compiled_model.h"
#include "tokenizer/normalize.h"

namespace tokamak {

Tokenizer::Model::Model(ModelProto model, std::string file, std::string checksum)
    : proto(std::move(model)),
      path(std::move(file)),
      hash(std::move(checksum)),
      user_symbols(proto.pieces),
      rules(proto.pieces) {
  byte_ids.fill(-1);
  for (size_t i = 0; i < proto.pieces.size(); ++i) {
    const Piece& piece = proto.pieces[i];
    const auto id = static_cast<int32_t>(i);
    if (piece.type == PieceType::kUnknown) unk_id = id;
    if (piece.type == PieceType::kControl && piece.text == proto.trainer.bos_piece) bos_id = id;
    if (piece.type == PieceType::kControl && piece.text == proto.trainer.eos_piece) eos_id = id;
    if (piece.type == PieceType::kByte) byte_ids[static_cast<size_t>(byte_of_piece(piece.text))] = id;
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
    bytes.remove_prefix(static_cast<size_t>(c.length));
  }
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<Model> model) : model_(std::move(model)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Tokenizer Tokenizer::load(const std::string& path) {
  const std::string bytes = read_text(path, Kind::kData);
  ModelProto proto = parse_model_proto(bytes, path);
  check_supported(proto, path);
  std::string hash = xxh3_128_hex(std::as_bytes(std::span(bytes.data(), bytes.size())));
  return Tokenizer(std::make_unique<Model>(std::move(proto), path, std::move(hash)));
}

int64_t Tokenizer::vocab_size() const { return static_cast<int64_t>(model_->proto.pieces.size()); }
int32_t Tokenizer::unk_id() const { return model_->unk_id; }
int32_t Tokenizer::bos_id() const { return model_->bos_id; }
int32_t Tokenizer::eos_id() const { return model_->eos_id; }
const std::string& Tokenizer::hash() const { return model_->hash; }
const std::string& Tokenizer::path() const { return model_->path; }

std::string_view Tokenizer::piece(int32_t id) const {
  if (id < 0 || id >= vocab_size()) {
    fail(Kind::kData, str("token id ", id, " is not in the vocabulary of ", path(), " (0 to ", vocab_size() - 1, ")"));
  }
  return model_->proto.pieces[static_cast<size_t>(id)].text;
}

// The dummy prefix is removed from the first visible piece; control pieces before it are ignored.
std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  std::string bytes;  // bytes of the pending byte pieces
  bool at_start = model_->proto.normalizer.add_dummy_prefix;
  for (const int32_t id : ids) {
    std::string_view piece = this->piece(id);
    const PieceType type = model_->proto.pieces[static_cast<size_t>(id)].type;
    if (type == PieceType::kByte) {
      bytes += static_cast<char>(byte_of_piece(piece));
      continue;
    }
    append_bytes(bytes, text);
    bytes.clear();
    if (!text.empty()) at_start = false;
    if (type == PieceType::kControl) continue;
    if (type == PieceType::kUnknown) {
      text += model_->proto.trainer.unk_surface.c_str();  // up to a NUL, like SentencePiece
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

void expect_tokenizer_of(const std::string& made, const std::string& hash, const Tokenizer& tokenizer) {
  if (hash.empty() || hash == tokenizer.hash()) return;
  fail(Kind::kData, str(made, " was made with tokenizer ", printable(hash), ", not with ", tokenizer.path(), ", ",
                        tokenizer.hash()));
}

}  // namespace tokamak
