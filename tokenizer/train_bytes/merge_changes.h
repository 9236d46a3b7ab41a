// Merges a pair in words and records how the counts of pairs change. Each thread has its own.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tokamak {

// Adjacent `left` and `right` become `result`. Pairs with the result count only if the other piece is shorter than
// `shorter_than`.
struct MergeRule {
  uint32_t left, right, result;
  int64_t shorter_than;
};

struct CountedWord {
  uint32_t word;
  int64_t count;
};

struct PairChange {
  uint64_t pair;       // PairCounts::key
  int64_t count = 0;   // how much its count changes
  uint32_t words = 0;  // where it is new
  uint32_t last_word = 0;
  uint32_t slot = 0;  // of it in the table
};

class MergeChanges {
 public:
  // For a rule whose ids are below `ids`. Forgets all.
  void start(size_t ids);

  // Applies the rule from left to right and returns the new length. `lengths` are those of the pieces.
  uint32_t merge(const MergeRule& rule, std::span<uint32_t> symbols, CountedWord word,
                 std::span<const int64_t> lengths);

  // Adds those of other words for the same rule.
  void append(const MergeChanges& other);

  std::span<const PairChange> pairs() const { return pairs_; }
  // An index in pairs() and a word where this pair is new; no word twice for a pair.
  std::span<const std::pair<uint32_t, uint32_t>> places() const { return places_; }

 private:
  // A changed pair is a neighbour and a fixed id: (neighbour, left), (neighbour, result), (right, neighbour) or
  // (result, neighbour).
  enum Kind : uint32_t { kLeftGone, kLeftNew, kRightGone, kRightNew };
  static uint32_t slot_of(Kind kind, uint32_t neighbour) { return neighbour * 4 + kind; }

  PairChange& change(uint32_t slot, uint64_t pair) {
    uint32_t& index = indices_[slot];
    if (index == 0) {
      pairs_.push_back({pair, 0, 0, ~0u, slot});
      index = static_cast<uint32_t>(pairs_.size());
    }
    return pairs_[index - 1];
  }

  void add_new(uint32_t slot, uint64_t pair, CountedWord word);

  std::vector<uint32_t> indices_;  // by slot: 1 + the index in pairs_; 0: none
  std::vector<PairChange> pairs_;
  std::vector<std::pair<uint32_t, uint32_t>> places_;
};

}  // namespace tokamak
