// Searches over many bytes at a time find what one byte at a time finds.
#include "data/rules/bytes.h"

#include <catch2/catch.hpp>
#include <string>

#include "data/rules/c4_lines.h"

using namespace tokamak;

namespace {

size_t first_from(const std::string& text, size_t at, bool (*wanted)(char)) {
  while (at < text.size() && !wanted(text[at])) ++at;
  return at;
}

bool is_other_than_letter(char c) { return !is_ascii_letter(c); }
bool is_other_than_ascii(char c) { return static_cast<unsigned char>(c) >= 0x80; }

}  // namespace

TEST_CASE("each byte is found at each place of a text") {
  for (int byte = 0; byte < 256; ++byte) {
    for (size_t place = 0; place < 20; ++place) {
      std::string text = "abcdefghAZazXYZijklm";
      text[place] = static_cast<char>(byte);
      INFO("byte " << byte << " at " << place);
      for (const size_t from : {size_t{0}, size_t{3}, text.size()}) {
        CHECK(find_non_letter(text, from) == first_from(text, from, is_other_than_letter));
        CHECK(find_non_ascii(text, from) == first_from(text, from, is_other_than_ascii));
      }
    }
  }
}

TEST_CASE("positions are found and bytes are counted in whole blocks and behind them") {
  for (size_t size = 0; size < 3 * kByteBlock; ++size) {
    for (size_t place = 0; place <= size; ++place) {
      const std::string text = std::string(place, 'a') + "b" + std::string(size - place, 'a');
      const auto is_b = [&](size_t at) { return text[at] == 'b'; };
      if (find_position(0, text.size(), is_b) != place || find_position(place + 1, text.size(), is_b) != text.size())
        FAIL("size " << size << ", place " << place);
    }
    CHECK(count_bytes(std::string(size, 'a'), [](char c) { return c == 'a'; }) == static_cast<int64_t>(size));
  }
}

TEST_CASE("ranges in ascending order have a byte or not") {
  const std::string text = "ab.cd..e";
  FoundInRanges dots([&](size_t at) { return std::min(text.find('.', at), text.size()); });
  CHECK_FALSE(dots.within(0, 2));
  CHECK(dots.within(0, 3));
  CHECK(dots.within(2, 5));
  CHECK_FALSE(dots.within(3, 5));
  CHECK(dots.within(5, 6));
  CHECK_FALSE(dots.within(7, 8));
}

TEST_CASE("a word is found in any case, at any place") {
  for (size_t place = 0; place < 3 * kByteBlock; ++place) {
    INFO(place);
    const std::string before(place, 'u');  // begins like the word
    CHECK(contains_word(before + "Use Cookies", "use cookies"));
    CHECK(contains_word(before + "usE cOOkies" + before, "use cookies"));
    CHECK_FALSE(contains_word(before + "useXcookies" + before, "use cookies"));
    CHECK_FALSE(contains_word(before + "use cookie", "use cookies"));
  }
  CHECK_FALSE(contains_word("", "use cookies"));
}
