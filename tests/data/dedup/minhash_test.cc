// Signatures are datatrove's, and find near copies as often as the theory says.
#include "data/dedup/minhash.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "data/dedup/simplified_text.h"
#include "data/rules/golden_texts.h"

using namespace tokamak;

namespace {

// Six letters; digits would all be 0.
std::string random_word(uint64_t number) {
  std::string word;
  for (int i = 0; i < 6; ++i, number /= 26) word += static_cast<char>('a' + number % 26);
  return word;
}

}  // namespace

TEST_CASE("signatures are datatrove's bit for bit") {
  MinHasher hasher({}, WordRules::kEnglish);
  for_each_golden_text([&](const JsonValue& row, const std::string& text) {
    INFO(text);
    const std::span<const uint64_t> signature = hasher.signature(text);
    std::vector<std::string> shown;
    for (size_t i = 0; i < 8 && !signature.empty(); ++i) shown.push_back(str(signature[i]));
    if (!signature.empty()) shown.push_back(str(signature.back()));
    CHECK(shown == row["minhash"].texts());
  });
}

TEST_CASE("simplified texts differ neither in case, accents, punctuation nor numbers") {
  const auto simplified = [](const std::string& text) {
    std::string out;
    simplify_text(text, out);
    return out;
  };
  CHECK(simplified("  Caf\u00e9, 12.5\u20ac!\n\nCAFE\u0301 7 ") == "cafe 0\u20ac cafe 0");
  CHECK(simplified("\u039f\u0394\u03a5\u03a3\u03a3\u0395\u03a9\u03a3 \u0130") ==
        "\u03bf\u03b4\u03c5\u03c3\u03c3\u03b5\u03c9\u03c2 i");
  CHECK(simplified("...").empty());
}

TEST_CASE("two texts agree in a value with the probability of their similarity") {
  MinHasher hasher({.bands = 64, .rows = 8}, WordRules::kAny);
  std::mt19937_64 random(7);
  for (const int64_t changed : {10, 40, 100}) {
    std::string a, b;
    for (int64_t i = 0; i < 1000; ++i) {
      const std::string word = random_word(random());
      a += word + " ";
      b += (i < changed * 5 && i % 5 == 0 ? random_word(random()) : word) + " ";
    }
    // Each changed word changes five n-grams of the 996.
    const double same = 996.0 - 5.0 * double(changed), similarity = same / (2 * 996 - same);
    const std::span<const uint64_t> one = hasher.signature(a);
    const std::vector<uint64_t> first(one.begin(), one.end());
    const std::span<const uint64_t> second = hasher.signature(b);
    int64_t equal = 0;
    for (size_t i = 0; i < first.size(); ++i) equal += first[i] == second[i] ? 1 : 0;
    const double deviation = std::sqrt(similarity * (1 - similarity) / 512);
    CHECK(std::abs(double(equal) / 512 - similarity) < 4 * deviation + 0.01);
  }
}

TEST_CASE("a text with fewer words than an n-gram has no signature") {
  MinHasher hasher({}, WordRules::kAny);
  CHECK(hasher.signature("one two three four").empty());
  CHECK(hasher.signature("one two three four five").size() == 112);
  CHECK(hasher.signature("").empty());
}
