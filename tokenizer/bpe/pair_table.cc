#include "tokenizer/bpe/pair_table.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/error.h"
#include "base/hash.h"

namespace tokamak {

PairTable::PairTable(const std::vector<BpeMerge>& merges, const std::array<uint32_t, 256>& byte_ids, Numbers numbers)
    : pages_(std::max<size_t>(64, std::bit_ceil(2 * merges.size())) * sizeof(uint64_t)),
      slots_(static_cast<uint64_t*>(pages_.data())),
      mask_(pages_.bytes() / sizeof(uint64_t) - 1),
      shift_(64 - std::countr_zero(mask_ + 1)),
      filter_pages_(mask_ + 1),
      filter_(static_cast<uint64_t*>(filter_pages_.data())),
      filter_shift_(shift_ - 3),
      byte_ranks_(size_t{1} << 16, kNoRank) {
  std::vector<BpeMerge> sorted = merges;
  const auto earlier = [](const BpeMerge& a, const BpeMerge& b) { return a.rank < b.rank; };
  if (!std::is_sorted(sorted.begin(), sorted.end(), earlier)) std::sort(sorted.begin(), sorted.end(), earlier);
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (i == 0 || sorted[i].rank != sorted[i - 1].rank) results_.push_back(static_cast<uint32_t>(sorted[i].result));
  }
  ranks_are_ids_ = numbers == Numbers::kAny &&
                   std::adjacent_find(results_.begin(), results_.end(), std::greater_equal<>()) == results_.end();
  while (!fill(sorted)) {
    factor_ = unpredictable_seed() | 1;
    pages_.clear();
    filter_pages_.clear();
  }
  for (size_t left = 0; left < 256; ++left) {
    for (size_t right = 0; right < 256; ++right) byte_ranks_[left << 8 | right] = rank(byte_ids[left], byte_ids[right]);
  }
}

bool PairTable::fill(std::span<const BpeMerge> sorted) {
  constexpr size_t kAhead = 16;  // memory answers meanwhile
  const auto key_of = [](const BpeMerge& merge) {
    return PairTable::key_of(static_cast<uint32_t>(merge.left), static_cast<uint32_t>(merge.right));
  };
  uint64_t from_zero = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (i + kAhead < sorted.size()) __builtin_prefetch(&slots_[hash_of(key_of(sorted[i + kAhead])) >> shift_], 1);
    const BpeMerge& merge = sorted[i];
    if (i > 0 && merge.rank != sorted[i - 1].rank) ++from_zero;
    const uint64_t rank = ranks_are_ids_ ? static_cast<uint64_t>(merge.result) : from_zero;
    const uint64_t key = key_of(merge);
    const uint64_t hash = hash_of(key);
    const uint64_t bit = hash >> filter_shift_;
    filter_[bit / 64] |= uint64_t{1} << bit % 64;
    size_t slot = hash >> shift_;
    for (size_t run = 0; slots_[slot] != 0; slot = (slot + 1) & mask_, ++run) {
      TOKAMAK_CHECK(slots_[slot] >> kRankBits != key, "the pair ", merge.left, " ", merge.right, " has two merges");
      if (run == kLongestRun) return false;
    }
    slots_[slot] = key << kRankBits | (rank + 1);
  }
  return longest_run() <= kLongestRun;
}

size_t PairTable::longest_run() const {
  size_t longest = 0;
  size_t run = 0;
  for (size_t slot = 0; slot <= mask_; ++slot) {
    run = slots_[slot] == 0 ? 0 : run + 1;
    longest = std::max(longest, run);
  }
  return longest;
}

}  // namespace tokamak
