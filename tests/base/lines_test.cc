#include "base/lines.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <vector>

#include "base/utf8.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  const TempDir dir;
  std::ofstream(dir.file("a")) << text;
  LineReader reader(dir.file("a"));
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);) lines.push_back(line);
  CHECK(reader.line_number() == static_cast<int64_t>(lines.size()));
  return lines;
}

}  // namespace

TEST_CASE("a line ends at its line feed, or with the file") {
  using Lines = std::vector<std::string>;
  CHECK(lines_of("").empty());
  CHECK(lines_of("\n") == Lines{""});
  CHECK(lines_of("one\r\n\ntwo") == Lines{"one\r", "", "two"});
  CHECK(lines_of("one\ntwo\n") == Lines{"one", "two"});
}

TEST_CASE("lines are whole wherever the blocks of reading end") {
  const size_t block = size_t{1} << 20;
  for (const size_t length : {block - 1, block, block + 1, 3 * block}) {
    const std::string large(length, 'x');
    CHECK(lines_of(large + "\n" + large) == std::vector<std::string>{large, large});
  }
}

TEST_CASE("UTF-8 has no overlong forms, no surrogates and nothing above U+10FFFF") {
  for (const char* valid : {"", "a", "\xC2\x80", "\xE2\x96\x81", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"})
    CHECK(is_valid_utf8(valid));
  CHECK(is_valid_utf8(std::string_view()));  // at a null pointer
  for (const char* bad : {"\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x96", "\xFF"}) {
    CHECK_FALSE(is_valid_utf8(bad));
    CHECK(decode_utf8(bad).length == 1);
  }
  CHECK(decode_utf8("\xF0\x9F\x98\x80z").code == 0x1F600);
}
