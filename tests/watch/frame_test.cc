#include "watch/frame.h"

#include <catch2/catch.hpp>

using namespace tokamak;

TEST_CASE("texts are cut off at the edges") {
  Frame frame(2, 5);
  CHECK(frame.put(0, 3, "abc") == 6);
  frame.put(1, -1, "xyz");
  frame.put(2, 0, "below");
  CHECK(frame.text() == "   ab\nyz\n");
  CHECK(Frame(0, 0).text().empty());
}

TEST_CASE("what does not fit is cut between words, and says so") {
  CHECK(fitting("no record for 12:34", 19) == "no record for 12:34");
  CHECK(fitting("no record for 12:34", 18) == "no record for...");
  CHECK(fitting("killed: no record", 12) == "killed...");
  CHECK(fitting("word", 3).empty());
  CHECK(fitting("", 0).empty());
}

TEST_CASE("no text moves the cursor or breaks the columns: control characters, broken UTF-8, wide and combining ones") {
  Frame frame(1, 20);
  frame.put(0, 0, "a\x1b[2Jb\tc\r\n\x7f|");
  CHECK(frame.row_text(0) == "a [2Jb c   |");
  Frame other(1, 20);
  other.put(0, 0, "\xff|\xc3\xa9|\xe4\xb8\xad|e\xcc\x81|\xf0\x9f\x98\x80|\xe2\x96\x88");
  CHECK(other.row_text(0) == "?|\xc3\xa9|?|e?|?|\xe2\x96\x88");
  CHECK(columns_of("\xc3\xa9|\xe4\xb8\xad") == 3);
}
