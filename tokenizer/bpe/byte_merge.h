// Merges the bytes of one pretoken by rank. Up to 32 bytes stay in registers and on the stack; longer ones take
// O(n log n) time and linear memory.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/pair_table.h"

namespace tokamak {

// Merges `size` symbols in place until `least` are left, and returns how many are. `ranks`: of the pair of each symbol
// and the next; the last is not read. Quadratic.
constexpr size_t kMostSymbols = 32;
size_t merge_symbols(const PairTable& pairs, uint32_t* ids, uint32_t* ranks, size_t size, size_t least = 1);

class ByteMerger {
 public:
  static constexpr size_t kShort = kMostSymbols;

  ByteMerger(const PairTable& pairs, const std::array<uint32_t, 256>& byte_ids)
      : pairs_(&pairs), byte_ids_(&byte_ids) {}

  // Writes the ids of `text`, of any length below 4 GiB, and returns their number. `ids` has space for one id per byte.
  size_t merge(std::string_view text, uint32_t* ids) {
    return text.size() <= kShort ? merge_short(text, ids) : merge_long(text, ids);
  }
  // The same for at most kShort bytes. Merging stops early when `least` ids are left.
  size_t merge_short(std::string_view text, uint32_t* ids, size_t least = 1) const;

 private:
  struct Node {
    uint32_t id;
    uint32_t previous;
    uint32_t next;
    uint32_t rank;  // of the pair of this node and the next; kNoRank also for a node that was merged into another
  };

  size_t merge_long(std::string_view text, uint32_t* ids);
  void merge_at(uint32_t at);
  void set_rank(uint32_t at, uint32_t rank);

  const PairTable* pairs_;
  const std::array<uint32_t, 256>* byte_ids_;
  std::vector<Node> nodes_;
  // Candidates are rank << 32 | position. Those in `now_` are sorted. A new one goes to the heap `soon_` if it comes
  // before the last of `now_`, and otherwise waits in `later_`, which is sorted when the other two are empty. So a run
  // of one byte costs linear time.
  std::vector<uint64_t> now_, soon_, later_;
};

}  // namespace tokamak
