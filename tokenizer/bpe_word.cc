#include "tokenizer/bpe_word.h"

#include "base/utf8.h"

namespace tokamak {

namespace {

constexpr size_t kKeptSymbols = size_t{1} << 16;  // scratch of longer words is freed

}  // namespace

// A character that occurs in no piece never merges, so what stands before it merges by itself.
void BpeWord::merge(std::string_view word, std::vector<int32_t>& ids) {
  char32_t previous = 0;
  for (size_t at = 0; at < word.size();) {
    const Utf8Char c = decode_valid_utf8(word.data() + at);
    const auto length = static_cast<size_t>(c.length);
    const uint32_t symbol = rules_.symbol(c.code);
    if (symbol != BpeRules::kNoSymbol) {
      if (!known_.empty()) ranks_.push_back(rules_.rank(previous, c.code));
      known_.push_back(symbol);
      previous = c.code;
    } else {
      merge_known(ids);
      add_unknown(word.substr(at, length), ids);
    }
    at += length;
  }
  merge_known(ids);
  if (known_.capacity() > kKeptSymbols) {
    known_ = {};
    ranks_ = {};
  }
}

void BpeWord::merge_known(std::vector<int32_t>& ids) {
  merger_.merge(known_, ranks_);
  for (const uint32_t symbol : known_) {
    if (rules_.is_piece(symbol)) {
      ids.push_back(static_cast<int32_t>(symbol));
    } else {
      add_unknown(rules_.character(symbol), ids);
    }
  }
  known_.clear();
  ranks_.clear();
}

void BpeWord::add_unknown(std::string_view character, std::vector<int32_t>& ids) const {
  if (unknown_.byte_ids == nullptr) {
    ids.push_back(unknown_.unk_id);
    return;
  }
  for (const char byte : character) ids.push_back((*unknown_.byte_ids)[static_cast<unsigned char>(byte)]);
}

}  // namespace tokamak
