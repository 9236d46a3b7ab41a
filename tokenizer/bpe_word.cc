#include "tokenizer/bpe_word.h"

#include <algorithm>

#include "base/utf8.h"

namespace tokamak {

namespace {

constexpr size_t kKeptSymbols = size_t{1} << 16;  // scratch of longer words is freed

}  // namespace

// A character that occurs in no piece never merges, so what stands before it merges by itself.
void BpeWord::merge(std::string_view word, std::vector<int32_t>& ids) {
  if (known_.size() < word.size()) {
    known_.resize(std::max(word.size(), SymbolMerger::kShort));
    ranks_.resize(known_.size());
  }
  size_t count = 0;
  char32_t previous = 0;
  for (size_t at = 0; at < word.size();) {
    const Utf8Char c = decode_valid_utf8(word.data() + at);
    const auto length = static_cast<size_t>(c.length);
    const uint32_t symbol = rules_.symbol(c.code);
    if (symbol != BpeRules::kNoSymbol) {
      known_[count] = symbol;
      if (count > 0) ranks_[count - 1] = rules_.rank(previous, c.code);
      ++count;
      previous = c.code;
    } else {
      merge_known(count, ids);
      count = 0;
      add_unknown(word.substr(at, length), ids);
    }
    at += length;
  }
  merge_known(count, ids);
  if (known_.size() > kKeptSymbols) {
    known_ = {};
    ranks_ = {};
  }
}

void BpeWord::merge_known(size_t count, std::vector<int32_t>& ids) {
  count = merger_.merge(known_.data(), ranks_.data(), count);
  for (size_t i = 0; i < count; ++i) {
    if (rules_.is_piece(known_[i])) {
      ids.push_back(static_cast<int32_t>(known_[i]));
    } else {
      add_unknown(rules_.character(known_[i]), ids);
    }
  }
}

void BpeWord::add_unknown(std::string_view character, std::vector<int32_t>& ids) const {
  if (unknown_.byte_ids == nullptr) {
    ids.push_back(unknown_.unk_id);
    return;
  }
  for (const char byte : character) ids.push_back((*unknown_.byte_ids)[static_cast<unsigned char>(byte)]);
}

}  // namespace tokamak
