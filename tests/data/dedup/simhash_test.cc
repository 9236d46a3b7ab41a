// Fingerprints differ in few bits where texts differ in few words.
#include "data/dedup/simhash.h"

#include <catch2/catch.hpp>
#include <random>

#include "base/strings.h"

using namespace tokamak;

namespace {

std::string random_text(uint64_t seed, int64_t words, int64_t changed = 0) {
  std::mt19937_64 random(seed), other(seed + 1000);
  std::string text;
  for (int64_t i = 0; i < words; ++i) {
    const uint64_t word = random() % 5000;
    text += i * changed / words != (i + 1) * changed / words ? str("v", other(), " ") : str("w", word, " ");
  }
  return text;
}

int distance(const std::string& a, const std::string& b, FingerprintBits bits) {
  return hamming_distance(simhash(a, bits), simhash(b, bits));
}

}  // namespace

TEST_CASE("equal words give equal fingerprints, whatever separates them") {
  CHECK(distance("One two, three four.", "one  TWO\nthree-four", FingerprintBits::k128) == 0);
  CHECK(simhash("", FingerprintBits::k64) == Fingerprint{});
  CHECK(simhash(" .,- ", FingerprintBits::k64) == Fingerprint{});
  CHECK(simhash("one", FingerprintBits::k64) != simhash("two", FingerprintBits::k64));
  CHECK(simhash("one two", FingerprintBits::k64) != simhash("two one", FingerprintBits::k64));
}

TEST_CASE("the more words change, the more bits do; unrelated texts differ in half") {
  double few = 0, some = 0, all = 0;
  constexpr int kTexts = 20;
  for (uint64_t seed = 0; seed < kTexts; ++seed) {
    const std::string text = random_text(seed, 600);
    few += distance(text, random_text(seed, 600, 3), FingerprintBits::k128);
    some += distance(text, random_text(seed, 600, 60), FingerprintBits::k128);
    all += distance(text, random_text(seed + 500, 600), FingerprintBits::k128);
  }
  CHECK(few / kTexts < 12);
  CHECK(some / kTexts > 2 * few / kTexts);
  CHECK(all / kTexts > 58);
  CHECK(all / kTexts < 70);
}

TEST_CASE("a bit of the fingerprint is the majority of that bit in the n-grams' hashes") {
  // A text of one n-gram has its hash as the fingerprint.
  for (const int words : {3, 4, 5, 6, 7, 10, 33, 66, 131}) {
    INFO(words);
    std::string text;
    std::vector<std::string> all;
    for (int i = 0; i < words; ++i) all.push_back(str("w", i * i % 23, i % 7)), text += all.back() + " ";
    std::vector<int> counts(128);
    for (size_t i = 0; i + 3 <= all.size(); ++i) {
      const Fingerprint hash = simhash(str(all[i], " ", all[i + 1], " ", all[i + 2]), FingerprintBits::k128);
      for (size_t bit = 0; bit < 128; ++bit) counts[bit] += static_cast<int>(hash[bit / 64] >> bit % 64 & 1);
    }
    const Fingerprint print = simhash(text, FingerprintBits::k128);
    int wrong = 0;
    for (size_t bit = 0; bit < 128; ++bit)
      wrong += (print[bit / 64] >> bit % 64 & 1) != static_cast<uint64_t>(counts[bit] > (words - 2) / 2);
    CHECK(wrong == 0);
  }
}

TEST_CASE("64 bits are the first 64 of 128") {
  const std::string text = random_text(3, 100);
  const Fingerprint narrow = simhash(text, FingerprintBits::k64), wide = simhash(text, FingerprintBits::k128);
  CHECK(narrow[0] == wide[0]);
  CHECK(narrow[1] == 0);
  CHECK(wide[1] != 0);
}

TEST_CASE("scripts without spaces have words too") {
  const std::string text = "\u732b\u5750\u5728\u7a97\u53f0\u4e0a\u72d7\u5728\u95e8\u53e3";
  CHECK(distance(text, text + "\u3002", FingerprintBits::k64) <= 32);
  CHECK(simhash(text, FingerprintBits::k64) != simhash("\u732b\u5750\u5728", FingerprintBits::k64));
}
