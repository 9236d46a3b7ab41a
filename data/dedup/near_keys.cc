#include "data/dedup/near_keys.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/hash.h"
#include "base/rng.h"

namespace tokamak {

namespace {

class ExactKeys final : public NearKeys {
 public:
  int64_t bands() const override { return 1; }
  BandRule rule() const override { return {}; }
  void keys(std::string_view text, std::vector<BandKey>& keys) override {
    keys.assign(1, xxh3_128(std::as_bytes(std::span(text))));
  }
};

class MinHashKeys final : public NearKeys {
 public:
  MinHashKeys(const MinHashOptions& options, WordRules rules) : options_(options), hasher_(options, rules) {}
  int64_t bands() const override { return options_.bands; }
  BandRule rule() const override { return {}; }
  void keys(std::string_view text, std::vector<BandKey>& keys) override {
    keys.clear();
    const std::span<const uint64_t> signature = hasher_.signature(text);
    const auto rows = static_cast<size_t>(options_.rows);
    for (size_t band = 0; band * rows < signature.size(); ++band)
      keys.push_back(xxh3_128(std::as_bytes(signature.subspan(band * rows, rows))));
  }

 private:
  MinHashOptions options_;
  MinHasher hasher_;
};

class SimHashKeys final : public NearKeys {
 public:
  explicit SimHashKeys(const SimHashOptions& options) : options_(options) {
    BitOrders orders = bit_orders(options);
    prefix_bits_ = orders.prefix_bits;
    for (const std::vector<uint8_t>& order : orders.orders) swaps_.push_back(swaps_of(order));
  }
  int64_t bands() const override { return std::ssize(swaps_); }
  BandRule rule() const override { return {.prefix_bits = prefix_bits_, .distance = options_.distance}; }
  void keys(std::string_view text, std::vector<BandKey>& keys) override {
    keys.clear();
    const Fingerprint print = simhash(text, options_.bits == 128 ? FingerprintBits::k128 : FingerprintBits::k64);
    if (print == Fingerprint{}) return;
    for (const std::vector<Swap>& swaps : swaps_) {
      BandKey key = print;
      for (const Swap& swap : swaps) {
        const uint64_t differs = (key[swap.word] >> swap.shift ^ key[swap.to_word] >> swap.to_shift) & 1;
        key[swap.word] ^= differs << swap.shift;
        key[swap.to_word] ^= differs << swap.to_shift;
      }
      keys.push_back(key);
    }
  }

 private:
  struct Swap {
    uint8_t word, shift, to_word, to_shift;  // of two bits, counted from the key's first
  };
  static uint8_t shift_of(size_t bit) { return static_cast<uint8_t>(63 - bit % 64); }

  // A prefix of 16 bits takes 16 swaps. The order of the other bits does not matter. The bits of the prefix ascend, so
  // that a swap moves none that is still to come.
  std::vector<Swap> swaps_of(const std::vector<uint8_t>& order) const {
    std::vector<Swap> swaps;
    for (size_t to = 0; to < static_cast<size_t>(prefix_bits_); ++to) {
      const size_t bit = order[to];
      if (bit != to)
        swaps.push_back({static_cast<uint8_t>(bit / 64), shift_of(bit), static_cast<uint8_t>(to / 64), shift_of(to)});
    }
    return swaps;
  }

  SimHashOptions options_;
  int64_t prefix_bits_ = 0;
  std::vector<std::vector<Swap>> swaps_;  // by table
};

// The order with these bits first.
std::vector<uint8_t> order_of(const std::vector<bool>& is_first) {
  std::vector<uint8_t> order(is_first.size());
  std::iota(order.begin(), order.end(), uint8_t{0});
  std::stable_partition(order.begin(), order.end(), [&](uint8_t bit) { return is_first[bit]; });
  return order;
}

int64_t choose(int64_t n, int64_t k) {
  int64_t out = 1;
  for (int64_t i = 0; i < k; ++i) out = out * (n - i) / (i + 1);
  return out;
}

}  // namespace

std::unique_ptr<NearKeys> make_near_keys(const ExactOptions& /*options*/) { return std::make_unique<ExactKeys>(); }

std::unique_ptr<NearKeys> make_near_keys(const MinHashOptions& options, WordRules rules) {
  return std::make_unique<MinHashKeys>(options, rules);
}

std::unique_ptr<NearKeys> make_near_keys(const SimHashOptions& options) {
  return std::make_unique<SimHashKeys>(options);
}

// Manku et al., section 3: with more blocks than differing bits, at least blocks - distance of them are equal. A table
// for each choice of these finds every pair. With many differing bits the prefixes would be too short, so that bits are
// drawn: a table finds a pair with probability (1 - distance / bits)^prefix.
BitOrders bit_orders(const SimHashOptions& options) {
  constexpr int64_t kDrawnPrefix = 16, kShortestPrefix = 12;
  BitOrders out;
  const auto bits = static_cast<size_t>(options.bits);
  int64_t blocks = options.distance + 1;
  while (choose(blocks + 1, options.distance) <= options.tables) ++blocks;
  const int64_t equal = blocks - options.distance;
  const int64_t prefix = options.bits * equal / blocks;
  if (choose(blocks, options.distance) <= options.tables && prefix >= kShortestPrefix) {
    out.prefix_bits = options.bits;
    std::vector<bool> is_equal(static_cast<size_t>(blocks), false);
    std::fill(is_equal.begin(), is_equal.begin() + equal, true);
    do {
      std::vector<bool> is_first(bits);
      for (size_t bit = 0; bit < bits; ++bit) is_first[bit] = is_equal[bit * static_cast<size_t>(blocks) / bits];
      out.prefix_bits = std::min<int64_t>(out.prefix_bits, std::count(is_first.begin(), is_first.end(), true));
      out.orders.push_back(order_of(is_first));
    } while (std::prev_permutation(is_equal.begin(), is_equal.end()));
    return out;
  }
  out.prefix_bits = kDrawnPrefix;
  const RandomStream random(0, "simhash tables");
  uint64_t draws = 0;
  for (int64_t table = 0; table < options.tables; ++table) {
    std::vector<bool> is_first(bits);
    for (int64_t chosen = 0; chosen < kDrawnPrefix;) {
      const size_t bit = random.word(draws++) % bits;
      chosen += is_first[bit] ? 0 : 1;
      is_first[bit] = true;
    }
    out.orders.push_back(order_of(is_first));
  }
  return out;
}

}  // namespace tokamak
