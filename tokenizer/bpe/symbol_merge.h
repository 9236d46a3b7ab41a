// Merges symbols, which are bytes or characters at first, by the ranks of their pairs. Up to 32 stay in registers; more
// take O(n log n) time and linear memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tokenizer/bpe/pair_table.h"

namespace tokamak {

class SymbolMerger {
 public:
  static constexpr size_t kShort = 32;

  // The pair with the lowest rank merges first, the leftmost of equals. Pairs with different results have different
  // ranks, and may still be equals: last_equals[rank] is the highest rank that counts as equal. Empty: there are none.
  // Both must outlive it.
  explicit SymbolMerger(const PairTable& pairs, std::span<const uint32_t> last_equals = {});

  // Merges at most kShort symbols in place and returns their number. ranks[i] is that of the pair of symbol i and the
  // next; there is space for kShort. Merging stops early when `least` symbols are left.
  size_t merge_short(uint32_t* symbols, uint32_t* ranks, size_t size, size_t least = 1) const;

  void merge_short(std::vector<uint32_t>& symbols, size_t least) const;

  // The same for any number of symbols, with space for max(size, kShort) ranks.
  size_t merge(uint32_t* symbols, uint32_t* ranks, size_t size);
  void merge(std::vector<uint32_t>& symbols);

  // The same in steps: start(), push() of each symbol, finish(). A rank is that of the symbol and the next one, and
  // kNoRank for the last. `ids` has space for all symbols.
  void start(size_t size);
  void push(uint32_t symbol, uint32_t rank);
  size_t finish(uint32_t* ids);

 private:
  struct Node {
    uint32_t id;
    uint32_t previous;
    uint32_t next;
    uint32_t rank;  // of the pair of this node and the next; kNoRank also for a node that was merged into another
  };

  uint32_t order(uint32_t rank) const {
    return rank < first_tied_ || rank == PairTable::kNoRank ? rank : last_equals_[rank];
  }
  template <int kVectors>
  size_t merge_in_lanes(uint32_t* symbols, const uint32_t* ranks, size_t size, size_t least) const;
  void merge_at(uint32_t at);
  void set_rank(uint32_t at, uint32_t rank);

  const PairTable* pairs_;
  std::span<const uint32_t> last_equals_;
  uint32_t first_tied_;  // lower ranks have no equals
  std::vector<Node> nodes_;
  // Candidates are order << 32 | position. Those in `now_` are sorted. A new one that comes before the last of `now_`
  // goes to the heap `soon_`. Any other waits in `later_`, which is sorted when the other two are empty. So a run of
  // one symbol costs linear time.
  std::vector<uint64_t> now_, soon_, later_;
};

}  // namespace tokamak
