// A set of integers in [0, size) that finds its smallest member at or above a bound. It is a segment tree of 64
// children: bits in words, and in the next level a bit for each word that is not zero. A call costs one step a level.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace tokamak {

class SortedSet {
 public:
  explicit SortedSet(int64_t size) {
    do {
      size = (size + 63) / 64;
      levels_.emplace_back(size, 0);
    } while (size > 1);
  }

  void insert(int64_t value) {
    for (auto& level : levels_) {
      level[value / 64] |= uint64_t{1} << value % 64;
      value /= 64;
    }
  }
  void erase(int64_t value) {
    for (auto& level : levels_) {
      level[value / 64] &= ~(uint64_t{1} << value % 64);
      if (level[value / 64] != 0) return;
      value /= 64;
    }
  }
  // -1: there is none.
  int64_t first_from(int64_t bound) const {
    for (size_t l = 0; l < levels_.size(); ++l) {
      if (bound / 64 >= std::ssize(levels_[l])) return -1;
      const uint64_t rest = levels_[l][bound / 64] & (~uint64_t{0} << bound % 64);
      if (rest == 0) {
        bound = bound / 64 + 1;
        continue;
      }
      int64_t found = bound / 64 * 64 + std::countr_zero(rest);
      while (l > 0) {
        --l;
        found = found * 64 + std::countr_zero(levels_[l][found]);
      }
      return found;
    }
    return -1;
  }

 private:
  std::vector<std::vector<uint64_t>> levels_;  // the values first, then the words of the level before
};

}  // namespace tokamak
