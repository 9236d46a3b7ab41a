// Copies share keys: equal texts, similar ones with the probability of the theory, and near fingerprints.
#include "data/dedup/near_keys.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "base/strings.h"

using namespace tokamak;

namespace {

// `words` words, each replaced with the probability `change`.
std::string varied(uint64_t seed, int64_t words, double change, uint64_t variant) {
  std::mt19937_64 random(seed), other(variant);
  std::string text;
  for (int64_t i = 0; i < words; ++i) {
    const uint64_t word = random();
    const bool changed = double(other() >> 11) * 0x1p-53 < change;
    uint64_t letters = changed ? other() : word;
    for (int k = 0; k < 6; ++k, letters /= 26) text += static_cast<char>('a' + letters % 26);
    text += ' ';
  }
  return text;
}

bool share_a_band(NearKeys& near, const std::string& a, const std::string& b) {
  std::vector<BandKey> one, two;
  near.keys(a, one);
  near.keys(b, two);
  REQUIRE(std::ssize(one) == near.bands());
  for (size_t i = 0; i < one.size(); ++i)
    if (one[i] == two[i]) return true;
  return false;
}

}  // namespace

TEST_CASE("equal texts have equal keys, and others do not") {
  const std::unique_ptr<NearKeys> exact = make_near_keys(ExactOptions{});
  CHECK(share_a_band(*exact, "same", "same"));
  CHECK_FALSE(share_a_band(*exact, "same", "same "));
}

TEST_CASE("MinHash finds copies as often as 1 - (1 - s^rows)^bands") {
  const std::unique_ptr<NearKeys> near = make_near_keys(MinHashOptions{}, WordRules::kAny);
  constexpr int kPairs = 300;
  for (const double change : {0.01, 0.03, 0.06, 0.2}) {
    // An n-gram of 5 words is unchanged with probability (1 - change)^5.
    const double same = std::pow(1 - change, 5), similarity = same / (2 - same);
    const double expected = 1 - std::pow(1 - std::pow(similarity, 8), 14);
    int found = 0;
    for (uint64_t i = 0; i < kPairs; ++i)
      found += share_a_band(*near, varied(i, 300, 0, 1), varied(i, 300, change, 1000 + i)) ? 1 : 0;
    INFO("similarity " << similarity << ", expected " << expected << ", found " << found / double(kPairs));
    // The similarity of a pair varies around its mean, which flattens the curve.
    CHECK(std::abs(found / double(kPairs) - expected) < 0.1);
  }
}

TEST_CASE("the keys of a fingerprint keep its distances, and begin with the bits of each order") {
  for (const SimHashOptions& options : {SimHashOptions{}, SimHashOptions{.bits = 128, .distance = 18}}) {
    const std::unique_ptr<NearKeys> near = make_near_keys(options);
    const BitOrders orders = bit_orders(options);
    const FingerprintBits bits = options.bits == 128 ? FingerprintBits::k128 : FingerprintBits::k64;
    for (uint64_t i = 0; i < 50; ++i) {
      const std::string a = varied(i, 100, 0, 1), b = varied(i, 100, 0.02, 100 + i);
      const Fingerprint one = simhash(a, bits), two = simhash(b, bits);
      std::vector<BandKey> keys, others;
      near->keys(a, keys);
      near->keys(b, others);
      REQUIRE(keys.size() == orders.orders.size());
      for (size_t table = 0; table < keys.size(); ++table) {
        CHECK(hamming_distance(keys[table], others[table]) == hamming_distance(one, two));
        for (size_t at = 0; at < static_cast<size_t>(orders.prefix_bits); ++at) {
          const size_t bit = orders.orders[table][at];
          CHECK((keys[table][at / 64] >> (63 - at % 64) & 1) == (one[bit / 64] >> (63 - bit % 64) & 1));
        }
      }
    }
  }
}

TEST_CASE("64 bits in 20 tables find every pair within 3 bits") {
  const BitOrders orders = bit_orders({.bits = 64, .distance = 3, .tables = 20});
  CHECK(orders.orders.size() == 20);
  CHECK(orders.prefix_bits >= 30);
  std::mt19937_64 random(5);
  for (int pair = 0; pair < 2000; ++pair) {
    const uint64_t a = random();
    uint64_t b = a;
    for (int i = 0; i < 3; ++i) b ^= uint64_t{1} << (random() % 64);
    const bool found = std::any_of(orders.orders.begin(), orders.orders.end(), [&](const auto& order) {
      for (int64_t i = 0; i < orders.prefix_bits; ++i)
        if (((a ^ b) >> order[static_cast<size_t>(i)] & 1) != 0) return false;
      return true;
    });
    REQUIRE(found);
  }
}

TEST_CASE("many differing bits are sought in drawn prefixes") {
  const BitOrders orders = bit_orders({.bits = 128, .distance = 18, .tables = 24});
  CHECK(orders.orders.size() == 24);
  CHECK(orders.prefix_bits == 16);
  for (const std::vector<uint8_t>& order : orders.orders) {
    std::vector<uint8_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < 128; ++i) REQUIRE(sorted[i] == i);  // each bit once
  }
  CHECK(orders.orders[0] != orders.orders[1]);
}

TEST_CASE("a SimHash key is its fingerprint with the bits in another order") {
  const std::unique_ptr<NearKeys> near = make_near_keys(SimHashOptions{});
  std::vector<BandKey> one, two;
  const std::string text = varied(1, 400, 0, 1), copy = text + "one more";
  near->keys(text, one);
  near->keys(copy, two);
  REQUIRE(one.size() == 20);
  const int distance = hamming_distance(simhash(text, FingerprintBits::k64), simhash(copy, FingerprintBits::k64));
  for (size_t i = 0; i < one.size(); ++i) CHECK(hamming_distance(one[i], two[i]) == distance);
  near->keys("", one);
  CHECK(one.empty());
}

TEST_CASE("a text without n-grams has no MinHash keys") {
  std::vector<BandKey> keys = {{1, 2}};
  make_near_keys(MinHashOptions{}, WordRules::kAny)->keys("too few words", keys);
  CHECK(keys.empty());
}
