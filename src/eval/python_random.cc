#include "eval/python_random.h"

#include <bit>
#include <numeric>
#include <set>

#include "base/error.h"

namespace tokamak {

namespace {

// The state that MT19937's init_by_array makes of a key (Matsumoto and Nishimura 2002): CPython's key is the seed, in
// words of 32 bits. std::mt19937 takes its state from generate().
class InitByArray {
 public:
  using result_type = uint32_t;
  explicit InitByArray(uint64_t seed) : key_{static_cast<uint32_t>(seed)} {
    if (seed >> 32 != 0) key_.push_back(static_cast<uint32_t>(seed >> 32));
  }

  template <class Iterator>
  void generate(Iterator begin, Iterator end) const {
    const auto n = static_cast<size_t>(end - begin);
    std::vector<uint32_t> state(n);
    state[0] = 19650218;
    for (size_t i = 1; i < n; ++i) state[i] = 1812433253 * mixed(state[i - 1]) + static_cast<uint32_t>(i);
    size_t i = 1;
    const auto next = [&] {
      if (++i < n) return;
      state[0] = state[n - 1];
      i = 1;
    };
    for (size_t k = 0, j = 0; k < std::max(n, key_.size()); ++k, j = (j + 1) % key_.size()) {
      state[i] = (state[i] ^ mixed(state[i - 1]) * 1664525) + key_[j] + static_cast<uint32_t>(j);
      next();
    }
    for (size_t k = 1; k < n; ++k) {
      state[i] = (state[i] ^ mixed(state[i - 1]) * 1566083941) - static_cast<uint32_t>(i);
      next();
    }
    state[0] = 0x80000000;
    std::copy(state.begin(), state.end(), begin);
  }

 private:
  static uint32_t mixed(uint32_t word) { return word ^ word >> 30; }
  std::vector<uint32_t> key_;
};

std::mt19937 generator_of(uint64_t seed) {
  InitByArray key(seed);
  return std::mt19937(key);
}

// sample() draws from a pool that shrinks if the population has at most this many items.
size_t largest_pool(size_t count) {
  if (count <= 5) return 21;
  size_t table = 1;
  while (table < 3 * count) table *= 4;
  return 21 + table;
}

}  // namespace

PythonRandom::PythonRandom(uint64_t seed) : generator_(generator_of(seed)) {}

size_t PythonRandom::below(size_t n) {
  TOKAMAK_CHECK(0 < n && n <= UINT32_MAX);
  const int bits = std::bit_width(n);
  size_t drawn = n;
  while (drawn >= n) drawn = word() >> (32 - bits);
  return drawn;
}

double PythonRandom::uniform() {
  const uint32_t high = word() >> 5, low = word() >> 6;
  return (double(high) * 67108864.0 + double(low)) / 9007199254740992.0;  // 2^26, 2^53
}

std::vector<size_t> PythonRandom::sample(size_t population, size_t count) {
  TOKAMAK_CHECK(count <= population, count, " of ", population);
  std::vector<size_t> drawn;
  if (population <= largest_pool(count)) {
    std::vector<size_t> pool(population);
    std::iota(pool.begin(), pool.end(), size_t{0});
    for (size_t left = population; drawn.size() < count; --left) {
      const size_t at = below(left);
      drawn.push_back(pool[at]);
      pool[at] = pool[left - 1];
    }
    return drawn;
  }
  std::set<size_t> taken;
  while (drawn.size() < count) {
    const size_t at = below(population);
    if (taken.insert(at).second) drawn.push_back(at);
  }
  return drawn;
}

}  // namespace tokamak
