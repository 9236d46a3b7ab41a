// Expected values are what Python 3.11 gives for the same expressions.
#include "eval/python_text.h"

#include <catch2/catch.hpp>

namespace tokamak {
namespace {

TEST_CASE("white space at the ends is Unicode's, and nothing else goes") {
  CHECK(python_strip("  a b\t\n") == "a b");
  CHECK(python_strip("\xC2\xA0\xE2\x80\x83x\xE3\x80\x80") == "x");  // U+00A0, U+2003, U+3000
  CHECK(python_strip("\xE2\x80\x8Bx") == "\xE2\x80\x8Bx");          // U+200B is no white space
  CHECK(python_strip("\x1C\x1Fx\x1B") == "x\x1B");                  // separators are, escape is not
  CHECK(python_rstrip(" a \xC2\x85") == " a");                      // U+0085
  CHECK(python_rstrip("\xD0\xB0\xE2\x80\xA8") == "\xD0\xB0");       // U+2028
  CHECK(python_strip(" \n ").empty());
  CHECK(python_rstrip("").empty());
}

TEST_CASE("len counts code points, and re.split one piece more than there are gaps") {
  CHECK(python_len("") == 0);
  CHECK(python_len("na\xC3\xAFve \xF0\x9F\x98\x80") == 7);
  CHECK(python_len("e\xCC\x81") == 2);  // a letter and its accent
  CHECK(python_count_words("") == 1);
  CHECK(python_count_words("one") == 1);
  CHECK(python_count_words("one  two\n\nthree") == 3);
  CHECK(python_count_words(" one ") == 3);  // ['', 'one', '']
  CHECK(python_count_words("a\xE2\x80\x83"
                           "b") == 2);
}

TEST_CASE("capitalize raises the first letter and lowers all others, in any alphabet") {
  CHECK(python_capitalize("") == "");
  CHECK(python_capitalize("hELLO McX") == "Hello mcx");
  CHECK(python_capitalize("\xC3\xA9T\xC3\x89") == "\xC3\x89t\xC3\xA9");                // éTÉ
  CHECK(python_capitalize("\xD0\xBC\xD0\x98\xD0\xA0") == "\xD0\x9C\xD0\xB8\xD1\x80");  // мИР
  CHECK(python_capitalize("\xE6\x97\xA5"
                          "A\xF0\x9F\x98\x80") ==
        "\xE6\x97\xA5"
        "a\xF0\x9F\x98\x80");
  CHECK(python_capitalize(" a") == " a");
}

TEST_CASE("replacement goes from left to right, and not into what it put there") {
  CHECK(replace_all("a  b   c", "  ", " ") == "a b  c");
  CHECK(replace_all("xx", "x", "xx") == "xxxx");
  CHECK(replace_all("", "x", "y") == "");
}

}  // namespace
}  // namespace tokamak
