// Counts of pairs of ids: a hash table with open addressing.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace tokamak {

class PairCounts {
 public:
  static uint64_t key(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }

  PairCounts() : slots_(size_t{1} << 12) {}

  void add(uint64_t pair, int64_t change) {
    if (size_ * 5 >= slots_.size() * 3) grow();
    Slot& slot = slots_[find(pair)];
    if (slot.pair != pair) {
      slot = {pair, 0};
      ++size_;
    }
    slot.count += change;
  }

  int64_t of(uint64_t pair) const {
    const Slot& slot = slots_[find(pair)];
    return slot.pair == pair ? slot.count : 0;
  }

  int64_t bytes() const { return std::ssize(slots_) * static_cast<int64_t>(sizeof(Slot)); }

 private:
  static constexpr uint64_t kNone = ~uint64_t{0};  // no pair of ids: these are below 2^31
  struct Slot {
    uint64_t pair = kNone;
    int64_t count = 0;
  };

  size_t find(uint64_t pair) const {
    const size_t mask = slots_.size() - 1;
    size_t at = (pair * 0x9E3779B97F4A7C15u) >> (64 - std::countr_zero(slots_.size()));
    while (slots_[at].pair != pair && slots_[at].pair != kNone) at = (at + 1) & mask;
    return at;
  }

  void grow() {
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    for (const Slot& slot : old) {
      if (slot.pair != kNone) slots_[find(slot.pair)] = slot;
    }
  }

  std::vector<Slot> slots_;  // their number is a power of two
  size_t size_ = 0;
};

}  // namespace tokamak
