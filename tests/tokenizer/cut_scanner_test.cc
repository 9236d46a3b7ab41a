// Cuts of random text against the pieces that must not be cut.
#include "tokenizer/bpe/cut_scanner.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "base/utf8.h"

using namespace tokamak;

namespace {

const std::vector<std::string> kCharacters = {"a", "b", " ", "\n", "é", "с", "ж", "中", "文", "▁", "😀", "😁"};

std::string random_characters(std::mt19937_64& random, uint64_t count) {
  std::string text;
  for (; count > 0; --count) text += kCharacters[random() % kCharacters.size()];
  return text;
}

std::vector<uint32_t> ends_of(const CutScanner& scanner, std::string_view text, size_t at_once) {
  std::vector<uint32_t> ends, some(at_once);
  while (const size_t count = scanner.scan(text, ends.empty() ? 0 : ends.back(), some)) {
    ends.insert(ends.end(), some.begin(), some.begin() + static_cast<int64_t>(count));
  }
  return ends;
}

// The pairs of adjacent characters in `text`, by the place of the second.
std::vector<std::pair<size_t, std::string>> pairs_in(std::string_view text) {
  std::vector<std::pair<size_t, std::string>> pairs;
  for (size_t begin = 0; begin < text.size();) {
    const size_t middle = begin + static_cast<size_t>(decode_valid_utf8(text.data() + begin).length);
    if (middle == text.size()) break;
    const auto second = static_cast<size_t>(decode_valid_utf8(text.data() + middle).length);
    pairs.emplace_back(middle, text.substr(begin, middle + second - begin));
    begin = middle;
  }
  return pairs;
}

}  // namespace

TEST_CASE("text is cut between characters that no piece has side by side, and never inside a piece") {
  std::mt19937_64 random(31);
  int64_t kept = 0, cut_pairs = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> pieces;
    std::set<std::string> joined;
    for (uint64_t n = random() % 12; n > 0; --n) {
      pieces.push_back(random_characters(random, 1 + random() % 4));
      for (const auto& [at, pair] : pairs_in(pieces.back())) joined.insert(pair);
    }
    const CutScanner scanner(std::vector<std::string_view>(pieces.begin(), pieces.end()));
    const std::string text = random_characters(random, 1 + random() % 300);
    const std::vector<uint32_t> ends = ends_of(scanner, text, 300);
    const std::set<uint32_t> cuts(ends.begin(), ends.end());
    REQUIRE(ends.back() == text.size());
    for (const auto& [at, pair] : pairs_in(text)) {
      const bool is_cut = cuts.contains(static_cast<uint32_t>(at));
      if (joined.contains(pair)) CHECK_FALSE(is_cut);
      if (!joined.contains(pair) && pair.size() == 2) CHECK(is_cut);  // of ASCII nothing is left open
      if (!joined.contains(pair) && pair.size() == 6) ++(is_cut ? cut_pairs : kept);
    }
    for (const uint32_t end : ends) CHECK((end == text.size() || (text[end] & 0xC0) != 0x80));
    for (const size_t at_once : {1, 2, 7, 9, 70}) CHECK(ends_of(scanner, text, at_once) == ends);
  }
  CHECK(cut_pairs > 8 * kept);  // of three bytes each; one bit of sixteen is set at most
  CHECK(ends_of(CutScanner({}), "", 8).empty());
}
