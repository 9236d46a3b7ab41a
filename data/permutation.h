// A keyed shuffle of [0, n) without arrays. It is a balanced Feistel network on the smallest even number of bits that
// holds n - 1. It repeats until the image is below n (cycle walking; Black and Rogaway, CT-RSA 2002). At most four
// iterations are expected, as 2^bits <= 4n. n may be as large as 2^62. The same n and key give the same order on every
// machine.
#pragma once

#include <bit>
#include <cstdint>

#include "base/error.h"
#include "base/rng.h"

namespace tokamak {

class Permutation {
 public:
  Permutation(int64_t n, uint64_t key) : n_(static_cast<uint64_t>(n)), key_(key) {
    TOKAMAK_CHECK(n > 0 && n <= (int64_t{1} << 62), "permutation of ", n);
    // bit_width(n - 1), and not that of n: with one bit too few the network is no bijection at powers of four.
    half_ = (std::bit_width(n_ - 1) + 1) / 2;
    mask_ = (uint64_t{1} << half_) - 1;
  }

  // The i-th element of the shuffled [0, n), for i in [0, n).
  int64_t operator()(int64_t i) const {
    auto x = static_cast<uint64_t>(i);
    TOKAMAK_CHECK(x < n_, "element ", i, " of ", n_);
    do {
      x = network(x);
    } while (x >= n_);
    return static_cast<int64_t>(x);
  }

 private:
  static constexpr uint64_t kRounds = 8;  // four are enough for large n (Luby and Rackoff); small ones need more

  uint64_t network(uint64_t x) const {
    uint64_t left = x >> half_;
    uint64_t right = x & mask_;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t mixed = left ^ (mix64(mix64(key_ + round) ^ right) & mask_);
      left = right;
      right = mixed;
    }
    return left << half_ | right;
  }

  uint64_t n_;
  uint64_t key_;
  int half_ = 0;  // bits of one half
  uint64_t mask_ = 0;
};

}  // namespace tokamak
