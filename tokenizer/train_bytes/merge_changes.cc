#include "tokenizer/train_bytes/merge_changes.h"

#include <algorithm>

#include "tokenizer/train_bytes/pair_counts.h"

namespace tokamak {

void MergeChanges::start(size_t ids) {
  for (const PairChange& change : pairs_) indices_[change.slot] = 0;
  pairs_.clear();
  places_.clear();
  if (indices_.size() < 4 * ids) indices_.resize(std::max(4 * ids, 2 * indices_.size()));
}

void MergeChanges::add_new(uint32_t slot, uint64_t pair, CountedWord word) {
  PairChange& added = change(slot, pair);
  added.count += word.count;
  if (added.last_word == word.word) return;
  added.last_word = word.word;
  ++added.words;
  places_.emplace_back(static_cast<uint32_t>(&added - pairs_.data()), word.word);
}

uint32_t MergeChanges::merge(const MergeRule& rule, std::span<uint32_t> symbols, CountedWord word,
                             std::span<const int64_t> lengths) {
  const auto [left, right, result, shorter_than] = rule;
  const size_t n = symbols.size();
  size_t kept = 0;
  for (size_t i = 0; i < n;) {
    if (symbols[i] != left || i + 1 == n || symbols[i + 1] != right) {
      symbols[kept++] = symbols[i++];
      continue;
    }
    i += 2;
    if (kept > 0) {
      const uint32_t before = symbols[kept - 1];
      change(slot_of(kLeftGone, before), PairCounts::key(before, left)).count -= word.count;
      if (lengths[before] < shorter_than) {
        add_new(slot_of(kLeftNew, before), PairCounts::key(before, result), word);
      }
    }
    if (i < n) {
      const uint32_t after = symbols[i];
      change(slot_of(kRightGone, after), PairCounts::key(right, after)).count -= word.count;
      if (lengths[after] < shorter_than) {
        // The pair (result, result) has one slot, and so one list of words.
        add_new(slot_of(after == result ? kLeftNew : kRightNew, after), PairCounts::key(result, after), word);
      }
    }
    symbols[kept++] = result;
  }
  return static_cast<uint32_t>(kept);
}

void MergeChanges::append(const MergeChanges& other) {
  std::vector<uint32_t> index_here;
  for (const PairChange& theirs : other.pairs_) {
    PairChange& ours = change(theirs.slot, theirs.pair);
    ours.count += theirs.count;
    ours.words += theirs.words;
    index_here.push_back(static_cast<uint32_t>(&ours - pairs_.data()));
  }
  for (const auto& [index, word] : other.places_) places_.emplace_back(index_here[index], word);
}

}  // namespace tokamak
