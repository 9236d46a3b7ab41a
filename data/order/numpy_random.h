// The random numbers of numpy.random.RandomState(seed), bit for bit: MT19937 (Matsumoto and Nishimura, ACM TOMACS 8
// (1998)) and the legacy shuffle, whose stream numpy has frozen (NEP 19).
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <utility>

namespace tokamak {

class NumpyRandom {
 public:
  explicit NumpyRandom(uint32_t seed) : words_(seed) {}

  // RandomState.shuffle of a one-dimensional array.
  template <class T>
  void shuffle(std::span<T> values) {
    for (auto i = std::ssize(values) - 1; i > 0; --i) std::swap(values[i], values[interval(static_cast<uint64_t>(i))]);
  }

 private:
  // Uniform in [0, max], max > 0: words masked to the bits of max, until one is not larger.
  uint64_t interval(uint64_t max) {
    const uint64_t mask = ~uint64_t{0} >> __builtin_clzll(max);
    const bool one_word = max <= 0xFFFFFFFFull;
    for (;;) {
      uint64_t value = words_();
      if (!one_word) value = value << 32 | words_();
      value &= mask;
      if (value <= max) return value;
    }
  }

  std::mt19937 words_;
};

}  // namespace tokamak
