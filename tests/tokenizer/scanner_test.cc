#include "tokenizer/scan/scanner.h"

#include <catch2/catch.hpp>
#include <random>

#include "base/error.h"
#include "scanned.h"
#include "tokenizer/scan/pattern.h"

using namespace tokamak;

namespace {

using Pieces = std::vector<std::string>;

Pieces split(std::string_view pattern, std::string_view text) {
  return pieces_of(*make_pattern_scanner(pattern), text);
}

}  // namespace

// Each expectation is the answer of tokenizers 0.23.3.
TEST_CASE("patterns match as Oniguruma matches them") {
  CHECK(split(R"(\p{N}{1,3}+)", "1234567a") == Pieces{"1234567", "a"});
  CHECK(split("a{2}?", "aaaa") == Pieces{"aa", "aa"});
  CHECK(split("a{1,2}?", "aaa") == Pieces{"a", "a", "a"});
  CHECK(split("a{2}+", "aaaaa") == Pieces{"aaaa", "a"});
  CHECK(split("a{,2}b", "aaab") == Pieces{"a", "aab"});
  CHECK(split("a$", "a\nba") == Pieces{"a", "\nb", "a"});
  CHECK(split("^", "a\nb\n") == Pieces{"a\n", "b\n"});
  CHECK(split("$", "a\nb\n") == Pieces{"a", "\nb", "\n"});
  CHECK(split(R"(\n\Z)", "a\n\n") == Pieces{"a", "\n", "\n"});
  CHECK(split(R"(\n\z)", "a\n\n") == Pieces{"a\n", "\n"});
  CHECK(split(".", "a\nb\r") == Pieces{"a", "\n", "b", "\r"});
  CHECK(split("(?i:k)", "kK\u212A") == Pieces{"k", "K", "\u212A"});
  CHECK(split("(?i:[^k])", "kK\u212Aa") == Pieces{"kK\u212A", "a"});
  CHECK(split("(?i)b|c", "aBabC") == Pieces{"a", "B", "a", "b", "C"});
  CHECK(split("(?i:'s)", "1'\u017F 'S") == Pieces{"1", "'\u017F", " ", "'S"});
  CHECK(split("[a-c&&b-d]", "abcd") == Pieces{"a", "b", "c", "d"});
  CHECK(split("[^a&&a]+", "abba") == Pieces{"a", "bb", "a"});
  CHECK(split("[[^a]b]+", "abca") == Pieces{"a", "bc", "a"});
  CHECK(split(R"((?<!\s)b)", "ab b") == Pieces{"a", "b", " b"});
  CHECK(split("(?<=a|bc)d", "adbcdd") == Pieces{"a", "d", "bc", "d", "d"});
  CHECK(split("(?=a)", "bab") == Pieces{"b", "ab"});
  CHECK(split("a?", "bab") == Pieces{"b", "a", "b"});
  CHECK(split("(?:a|b)*?c", "abac") == Pieces{"abac"});
  CHECK(split(R"(\u4e00|\x{1F600}|\x41)", "A一😀z") == Pieces{"A", "一", "😀", "z"});
  CHECK(split(R"(\s+)", "a\u180E\u200B\u3000\x1C\u0085") == Pieces{"a\u180E\u200B", "\u3000", "\x1C", "\u0085"});
  CHECK(split(R"(\w+)", "a\u00B2\u09F4_-\u0301") == Pieces{"a\u00B2", "\u09F4", "_", "-", "\u0301"});
}

TEST_CASE("a pattern that we would match differently is refused by name") {
  const auto refusal = [](std::string_view pattern) {
    try {
      make_scanner(pattern);
    } catch (const Error& error) {
      CHECK(error.kind() == Kind::kData);
      return std::string(error.what());
    }
    FAIL(pattern << " was accepted");
    return std::string();
  };
  using Catch::Contains;
  CHECK_THAT(refusal(R"((a)\1)"), Contains("the escape \\1"));
  CHECK_THAT(refusal(R"(\bfoo)"), Contains("the escape \\b"));
  CHECK_THAT(refusal(R"(\pL)"), Contains("the escape \\p"));
  CHECK_THAT(refusal(R"(\p{Emoji})"), Contains("the property Emoji"));
  CHECK_THAT(refusal("(?P<n>a)"), Contains("the group (?P<"));
  CHECK_THAT(refusal("a(?i)b|c"), Contains("(?i) in the middle"));
  CHECK_THAT(refusal("(?i:st)"), Contains("the letters st"));
  CHECK_THAT(refusal("(?i:é)"), Contains("outside ASCII"));
  CHECK_THAT(refusal("(?i:[à-é])"), Contains("(?i) with this class"));
  CHECK_THAT(refusal("(?i:\\p{Lu})"), Contains("(?i) with this property"));
  CHECK_THAT(refusal("(?:a*)*"), Contains("can match nothing"));
  CHECK_THAT(refusal("a{3,1}"), Contains("its limits exchanged"));
  CHECK_THAT(refusal("a{1,2}{2}"), Contains("two repetitions in a row"));
  CHECK_THAT(refusal("a{1"), Contains("a { that begins no repetition"));
  CHECK_THAT(refusal("[[:alpha:]]"), Contains("a POSIX class"));
  CHECK_THAT(refusal("[a-\\d]"), Contains("ends in a property"));
  CHECK_THAT(refusal("[]a]"), Contains("a ] at the start of a class"));
  CHECK_THAT(refusal("[a"), Contains("an unclosed ["));
  CHECK_THAT(refusal("(a"), Contains("an unclosed ("));
  CHECK_THAT(refusal("a)"), Contains("an unmatched )"));
  CHECK_THAT(refusal("(?<=\\s+)a"), Contains("lookbehind"));
  CHECK_THAT(refusal("\xFF"), Contains("invalid UTF-8"));
  CHECK_THAT(refusal(std::string(70000, 'a')), Contains("64 KiB"));
  CHECK_THAT(refusal(std::string(200, '(') + "a" + std::string(200, ')')), Contains("100 deep"));
}

TEST_CASE("a pattern that backtracks without end is an error, and a long match is none") {
  const std::string many(100000, 'a');
  CHECK(split("(?:a|b)+", many) == Pieces{many});
  const std::string fewer(40000, 'a');  // each piece tries all that is left
  CHECK(split("(?:a|b)+c|a", fewer).size() == fewer.size());
  CHECK_THROWS_AS(split("(?:a+a+)+(?:b|c)", std::string(60, 'a')), Error);
}

TEST_CASE("the pieces do not depend on the window that PCRE2 sees") {
  const auto scanner = make_pattern_scanner(R"((?<=b)a+|^c|\s+(?!\S)|x+$)");
  std::mt19937_64 random(3);
  for (int i = 0; i < 200; ++i) {
    std::string text;
    while (text.size() < 1500) {
      const size_t length = random() % 20 == 0 ? random() % 700 : 1 + random() % 3;
      text += std::string(length, "abc \nxyz"[random() % 8]);
      if (random() % 7 == 0) text += "é中";
    }
    const std::vector<uint32_t> all = ends_of(*scanner, text);
    CHECK(ends_of(*scanner, text, 1) == all);
    CHECK(ends_of(*scanner, text, 7) == all);
  }
}
