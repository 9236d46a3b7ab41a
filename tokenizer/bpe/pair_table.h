// The ranks of adjacent pairs, in 8 bytes a merge. Two bytes are looked up directly, any other pair by hashing.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tokenizer/bpe/byte_bpe.h"
#include "tokenizer/bpe/zeroed_pages.h"

namespace tokamak {

class PairTable {
 public:
  static constexpr uint32_t kNoRank = UINT32_MAX;
  static constexpr int kIdBits = 21;
  static constexpr int kRankBits = 22;
  static constexpr int64_t kMostIds = int64_t{1} << kIdBits;
  static constexpr int64_t kMostRanks = (int64_t{1} << kRankBits) - 1;

  // Ranks are renumbered in the same order: from 0 on or, if kAny allows it, as the ids of results. The caller has
  // checked ids, the number of ranks, and that merges of equal rank have the same result. Pairs that were chosen to
  // collide cost another pass with another hash.
  enum class Numbers { kFromZero, kAny };
  PairTable(const std::vector<BpeMerge>& merges, const std::array<uint32_t, 256>& byte_ids,
            Numbers numbers = Numbers::kAny);

  uint32_t rank_of_bytes(uint8_t left, uint8_t right) const { return byte_ranks_[left << 8 | right]; }

  uint32_t rank(uint32_t left, uint32_t right) const {
    const uint64_t key = key_of(left, right);
    const uint64_t hash = hash_of(key);
    const uint64_t bit = hash >> filter_shift_;
    if ((filter_[bit / 64] >> bit % 64 & 1) == 0) return kNoRank;
    for (size_t i = hash >> shift_;; i = (i + 1) & mask_) {
      const uint64_t slot = slots_[i];
      if (slot >> kRankBits == key) return static_cast<uint32_t>(slot & ((uint64_t{1} << kRankBits) - 1)) - 1;
      if (slot == 0) return kNoRank;
    }
  }

  void prefetch(uint32_t left, uint32_t right) const {
    const uint64_t hash = hash_of(key_of(left, right));
    __builtin_prefetch(&filter_[(hash >> filter_shift_) / 64]);
    __builtin_prefetch(&slots_[hash >> shift_]);
  }

  uint32_t result(uint32_t rank) const { return ranks_are_ids_ ? rank : results_[rank]; }
  void prefetch_result(uint32_t rank) const {
    if (!ranks_are_ids_) __builtin_prefetch(&results_[rank]);
  }
  std::span<const uint32_t> results() const { return results_; }  // by rank, each once

  static constexpr size_t kLongestRun = 512;
  size_t longest_run() const;  // of taken slots: the most that a search looks at

 private:
  static uint64_t key_of(uint32_t left, uint32_t right) { return uint64_t{left} << kIdBits | right; }
  uint64_t hash_of(uint64_t key) const { return key * factor_; }
  bool fill(std::span<const BpeMerge> sorted);  // false: a run of taken slots is longer than kLongestRun

  uint64_t factor_ = 0x9E3779B97F4A7C15u;
  ZeroedPages pages_;
  uint64_t* slots_;  // each is left | right | rank + 1; 0: free. At most half full
  size_t mask_;
  int shift_;
  // A bit is 0 if no pair has it. Most pairs have no merge, and the filter stays in the second level of cache.
  ZeroedPages filter_pages_;
  uint64_t* filter_;
  int filter_shift_;
  std::vector<uint32_t> byte_ranks_;  // (256, 256)
  std::vector<uint32_t> results_;
  bool ranks_are_ids_;  // the id of a result is its rank: in vocabularies that number pieces by rank
};

}  // namespace tokamak
