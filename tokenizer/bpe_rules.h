// The merge rules of a BPE vocabulary, compiled to integers. A symbol is a piece or a character between two merges.
// SentencePiece's rule: of all adjacent pairs whose concatenation is a piece, merge the pair with the highest score,
// the leftmost of equals; repeat until no pair is a piece.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "tokenizer/model_proto.h"

namespace tokamak {

class BpeRules {
 public:
  explicit BpeRules(const std::vector<Piece>& pieces);

  // A symbol's number: its id for a piece; -1 for a character that occurs in no piece. A character that occurs in
  // pieces but is not one has a number above the vocabulary.
  int32_t symbol(char32_t c) const { return c < symbols_.size() ? symbols_[c] : -1; }
  bool is_piece(int32_t symbol) const { return symbol >= 0 && symbol < vocab_size_; }

  struct Merge {
    uint32_t rank = std::numeric_limits<uint32_t>::max();  // smaller merges first; equal scores have equal ranks
    int32_t symbol = -1;                                   // -1: the two do not merge
  };
  Merge merge(int32_t left, int32_t right) const;

  // False only if no piece contains `b` right after `a`. Then no merge ever spans that position, and both sides can be
  // encoded separately. (A Bloom filter: a false positive costs time only.)
  bool may_join(char32_t a, char32_t b) const {
    const uint64_t bit = join_hash(a, b) >> join_shift_;
    return (joins_[bit / 64] >> (bit % 64) & 1) != 0;
  }

 private:
  struct Slot {
    uint64_t key = kEmpty;
    Merge merge;
  };
  static constexpr uint64_t kEmpty = std::numeric_limits<uint64_t>::max();
  static constexpr uint64_t kGolden = 0x9E3779B97F4A7C15ull;  // 2^64 / golden ratio: Fibonacci hashing

  static uint64_t join_hash(char32_t a, char32_t b) { return (uint64_t{a} << 21 ^ b) * kGolden; }
  static uint64_t pair_key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  }
  void number_characters(const std::vector<Piece>& pieces);
  void build_joins(const std::vector<Piece>& pieces);
  void build_merges(const std::vector<Piece>& pieces);

  int32_t vocab_size_;
  std::vector<int32_t> symbols_;  // by code point
  std::vector<uint64_t> joins_;
  int join_shift_ = 0;
  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
  int slot_shift_ = 0;
};

inline BpeRules::Merge BpeRules::merge(int32_t left, int32_t right) const {
  if (left < 0 || right < 0) return {};
  const uint64_t key = pair_key(left, right);
  const uint64_t mask = slots_.size() - 1;
  for (uint64_t i = key * kGolden >> slot_shift_;; i = (i + 1) & mask) {
    if (slots_[i].key == key) return slots_[i].merge;
    if (slots_[i].key == kEmpty) return {};
  }
}

}  // namespace tokamak
