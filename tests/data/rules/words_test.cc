// Words are spaCy's, as datatrove uses them.
#include "data/rules/words.h"

#include <catch2/catch.hpp>

#include "data/rules/golden_texts.h"

using namespace tokamak;

namespace {

std::vector<std::string> words_of(const std::string& text, WordRules rules = WordRules::kEnglish) {
  WordSplitter splitter(rules);
  std::vector<std::string_view> words;
  splitter.split(text, words);
  return {words.begin(), words.end()};
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("words of awkward texts are those of spaCy") {
  int64_t compared = 0;
  for_each_golden_text([&](const JsonValue& row, const std::string& text) {
    if (!row["words"].present()) return;
    INFO(text);
    CHECK(words_of(text) == row["words"].texts());
    CHECK(words_of(text, WordRules::kAny) == row["words_any"].texts());
    ++compared;
  });
  CHECK(compared >= 24);
}

TEST_CASE("marks at the ends of a word, units and contractions are words") {
  CHECK(words_of("(\"Hello,\" she said...)") == Words{"(", "\"", "Hello", ",", "\"", "she", "said", "...", ")"});
  CHECK(words_of("5kg 10% 80km/h 3,5 1.5") == Words{"5", "kg", "10", "%", "80", "km/h", "3,5", "1.5"});
  CHECK(words_of("+5 +x 5+") == Words{"+5", "+", "x", "5", "+"});
  CHECK(words_of("don't couldn't've cannot its") == Words{"do", "n't", "could", "n't", "'ve", "can", "not", "its"});
  CHECK(words_of("don't cannot", WordRules::kAny) == Words{"don't", "cannot"});
}

TEST_CASE("letters before one mark are two words, unless they are an exception") {
  CHECK(words_of("word, schön. слово! über: ok_ (in) WORLD.") ==
        Words{"word", ",", "schön", ".", "слово", "!", "über", ":", "ok", "_", "(", "in", ")", "WORLD", "."});
  CHECK(words_of("Mr. A. word$ cannot, dont. it’s") ==
        Words{"Mr.", "A.", "word$", "can", "not", ",", "do", "nt", ".", "it", "’s"});
}

TEST_CASE("addresses and abbreviations stay whole, and compounds do not") {
  CHECK(words_of("https://a.example.com/b?c=d, me@example.org.") ==
        Words{"https://a.example.com/b?c=d", ",", "me@example.org", "."});
  CHECK(words_of("Dr. Who, i.e. z.B.") == Words{"Dr.", "Who", ",", "i.e.", "z.", "B."});
  CHECK(words_of("well-known this/that a--b x=y") ==
        Words{"well", "-", "known", "this", "/", "that", "a", "--", "b", "x", "=", "y"});
}

TEST_CASE("of exceptions that overlap, the longest is a word") {
  CHECK(words_of("(x):')") == Words{"(", "x", ")", ":')"});
  CHECK(words_of("(x):") == Words{"(", "x", "):"});
}

TEST_CASE("a text without words has none, and white space of any kind separates") {
  CHECK(words_of("").empty());
  CHECK(words_of(" \n\t\u00a0\u3000").empty());
  CHECK(words_of("a\u00a0b\u2028c\u0085d") == Words{"a", "b", "c", "d"});
}
