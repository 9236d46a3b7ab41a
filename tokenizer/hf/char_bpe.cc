#include "tokenizer/hf/char_bpe.h"

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace tokamak {

namespace {

constexpr size_t kKeptCharacters = size_t{1} << 16;  // scratch of longer pretokens is freed

const BpeSpec& expect_small(const BpeSpec& model, const std::string& source) {
  if (model.pieces.ids() > PairTable::kMostIds || std::ssize(model.merges) > PairTable::kMostRanks) {
    fail(Kind::kData, str(source, ": ", model.pieces.ids(), " ids and ", model.merges.size(), " merges; at most ",
                          PairTable::kMostIds, " and ", PairTable::kMostRanks, " are supported"));
  }
  return model;
}

// Whether a byte occurs in UTF-8.
bool occurs(int byte) { return byte != 0xC0 && byte != 0xC1 && byte < 0xF5; }

}  // namespace

CharBpe::CharBpe(const BpeSpec& model, const std::string& source)
    : model_(model), pairs_(expect_small(model, source).merges, {}), pieces_(0, 0) {
  if (!model.unk_token.empty() && model.unk_id < 0) {
    fail(Kind::kData, str(source, ": 'model.unk_token' is '", printable(model.unk_token), "', which is no piece"));
  }
  for (int64_t i = 0; i < model.pieces.ids(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const std::string_view piece = model.pieces[id];
    if (piece.empty()) continue;
    const Utf8Char first = decode_valid_utf8(piece.data());
    if (first.length != std::ssize(piece)) continue;
    if (first.code >= ids_.size()) ids_.resize(first.code + 1, -1);
    ids_[first.code] = id;
  }
  for (int byte = 0; byte < 256; ++byte) {
    constexpr const char* kDigits = "0123456789ABCDEF";
    byte_ids_[static_cast<size_t>(byte)] = model.pieces.find(str("<0x", kDigits[byte / 16], kDigits[byte % 16], ">"));
  }
  if (!may_cut()) return;
  std::vector<std::string_view> results;
  for (const BpeMerge& merge : model.merges) results.push_back(model.pieces[merge.result]);
  cuts_.emplace(results);
}

bool CharBpe::has_affixes() const {
  return !model_.continuing_subword_prefix.empty() || !model_.end_of_word_suffix.empty();
}

// A part is no pretoken: it must not become a piece as a whole, and has no prefix or suffix of its own. No character
// may vanish or wait as an unknown token, since its neighbours would meet. No merge is of bytes, whose pieces say
// nothing about the characters.
bool CharBpe::may_cut() const {
  if (model_.whole_pieces || has_affixes() || !model_.byte_fallback) return false;
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_piece = byte < 0x80 && id_of(static_cast<char32_t>(byte)) >= 0;
    if (occurs(byte) && !is_piece && byte_ids_[static_cast<size_t>(byte)] < 0) return false;
  }
  std::vector<bool> is_byte(static_cast<size_t>(model_.pieces.ids()));
  for (const int32_t id : byte_ids_) {
    if (id >= 0) is_byte[static_cast<size_t>(id)] = true;
  }
  return std::none_of(model_.merges.begin(), model_.merges.end(), [&](const BpeMerge& merge) {
    return is_byte[static_cast<size_t>(merge.left)] || is_byte[static_cast<size_t>(merge.right)];
  });
}

void CharMerger::merge(std::string_view pretoken, std::vector<int32_t>& ids) {
  if (bpe_.model().whole_pieces) {
    if (const int32_t id = bpe_.model().pieces.find(pretoken); id >= 0) {
      ids.push_back(id);
      return;
    }
  }
  symbols_.clear();
  add_symbols(pretoken);
  ranks_.resize(std::max(symbols_.size(), SymbolMerger::kShort));
  for (size_t i = 0; i + 1 < symbols_.size(); ++i) ranks_[i] = bpe_.pairs().rank(symbols_[i], symbols_[i + 1]);
  symbols_.resize(merger_.merge(symbols_.data(), ranks_.data(), symbols_.size()));
  ids.insert(ids.end(), symbols_.begin(), symbols_.end());
  if (symbols_.capacity() > kKeptCharacters) {
    symbols_ = {};
    ranks_ = {};
  }
}

// An unknown token waits for the next piece of the vocabulary, or the end. Byte pieces do not flush it, so it comes
// after them: Hugging Face's model does the same.
void CharMerger::add_symbols(std::string_view pretoken) {
  const BpeSpec& model = bpe_.model();
  bool unknown_waits = false;
  for (size_t at = 0; at < pretoken.size();) {
    const auto length = static_cast<size_t>(decode_valid_utf8(pretoken.data() + at).length);
    const int32_t id = id_of(pretoken, at, length);
    const std::string_view character = bpe_.has_affixes() ? std::string_view(character_) : pretoken.substr(at, length);
    at += length;
    if (id >= 0) {
      if (unknown_waits) add(model.unk_id);
      unknown_waits = false;
      add(id);
      continue;
    }
    const auto byte_id = [&](char byte) { return bpe_.byte_id(static_cast<unsigned char>(byte)); };
    if (model.byte_fallback &&
        std::all_of(character.begin(), character.end(), [&](char byte) { return byte_id(byte) >= 0; })) {
      for (const char byte : character) add(byte_id(byte));
      continue;
    }
    if (model.unk_id < 0) continue;  // the character vanishes
    if (unknown_waits && !model.fuse_unk) add(model.unk_id);
    unknown_waits = true;
  }
  if (unknown_waits) add(model.unk_id);
}

int32_t CharMerger::id_of(std::string_view pretoken, size_t at, size_t length) {
  if (!bpe_.has_affixes()) return bpe_.id_of(decode_valid_utf8(pretoken.data() + at).code);
  const BpeSpec& model = bpe_.model();
  character_.assign(at > 0 ? model.continuing_subword_prefix : "");
  character_ += pretoken.substr(at, length);
  if (at + length == pretoken.size()) character_ += model.end_of_word_suffix;
  return model.pieces.find(character_);
}

}  // namespace tokamak
