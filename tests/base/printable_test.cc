#include "base/printable.h"

#include <catch2/catch.hpp>

using namespace tokamak;

TEST_CASE("text of any language is shown as it is") {
  for (const std::string text : {"", "model.layers.0", "C:\\temp", "путь/к", "日本", "e\u0301", "🙂"}) {
    CHECK(printable(text) == text);
    CHECK(printable_lines(text) == text);
  }
}

TEST_CASE("what a terminal would obey is shown as an escape") {
  CHECK(printable("a\x1b[2Jb\x07") == "a\\x1b[2Jb\\x07");
  CHECK(printable(std::string("a\0b", 3)) == "a\\x00b");
  CHECK(printable("\x7f") == "\\x7f");
  CHECK(printable("\u009b31m") == "\\u009b31m");  // CSI as one character
  CHECK(printable("a\nb\r\tc") == "a\\nb\\r\\tc");
  CHECK(printable("a\u2028b") == "a\\u2028b");
}

TEST_CASE("what would show text in another order, or not at all, is shown as an escape") {
  CHECK(printable("a\u202eb\u2066c") == "a\\u202eb\\u2066c");
  CHECK(printable("\ufeffa\U000e0041") == "\\ufeffa\\ue0041");
}

TEST_CASE("bytes that are no UTF-8 are shown one by one") {
  CHECK(printable("a\xff\xc3(") == "a\\xff\\xc3(");
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
}

TEST_CASE("long text is cut between two characters") {
  CHECK(printable("abcdef", 6) == "abcdef");
  CHECK(printable("abcdefg", 6) == "abcdef...");
  CHECK(printable("жжжж", 3) == "жжж...");
  CHECK(printable("\x1b\x1b\x1b", 8) == "\\x1b\\x1b...");
  CHECK(printable(std::string(1 << 20, 'x')).size() == 83);
  CHECK(printable(std::string(1 << 20, '\x1b')).size() == 83);  // the escapes count, not what they stand for
  CHECK(printable(std::string(1 << 20, '\n'), 5) == "\\n\\n...");
}

TEST_CASE("a message of several lines cannot pass for several messages") {
  CHECK(printable_lines("bad name\n12:00:00 info done\n  hint: x") == "bad name\n  12:00:00 info done\n  hint: x");
  CHECK(printable_lines("a\rb\x1b[1A") == "a\\rb\\x1b[1A");
}
