// The random numbers of CPython's random.Random (3.11), which lm-evaluation-harness chooses examples by: the Mersenne
// Twister MT19937, and CPython's way from its words to indices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace tokamak {

class PythonRandom {
 public:
  explicit PythonRandom(uint64_t seed);  // random.Random(seed)

  uint32_t word() { return static_cast<uint32_t>(generator_()); }
  size_t below(size_t n);  // in [0, n), 0 < n < 2^32
  double uniform();        // random(): in [0, 1)

  // sample(range(population), count): distinct indices, in the order in which they are drawn.
  std::vector<size_t> sample(size_t population, size_t count);

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i-- > 1;) std::swap(items[i], items[below(i + 1)]);
  }

 private:
  std::mt19937 generator_;
};

}  // namespace tokamak
