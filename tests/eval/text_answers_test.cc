// Answers in generated texts. The expected ones are those of lm-evaluation-harness 0.4.13.
#include "eval/text_answers.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace tokamak;

TEST_CASE("a text ends before each stop, in the order of the stops") {
  const std::vector<std::string> stops = {"\n", "Question:", ""};
  CHECK(cut_at_stops("a b", stops) == "a b");
  CHECK(cut_at_stops("a\nb\nc", stops) == "a");
  CHECK(cut_at_stops("a Question:\nb", stops) == "a ");
  CHECK(cut_at_stops("\n", stops).empty());
}

TEST_CASE("strict_match takes the first number after hashes, flexible_extract the last number") {
  struct Row {
    const char *text, *strict, *flexible;
  };
  for (const auto& [text, strict, flexible] : std::vector<Row>{{"so 3. #### 3", "3", "3"},
                                                               {"costs $1,234.50.", "[invalid]", "$1,234.50."},
                                                               {"#### -12,000.", "-12,000.", "-12,000."},
                                                               {"range 1-2", "[invalid]", "-2"},
                                                               {"#### 7\n#### 8", "7", "8"},
                                                               {"x ... y", "[invalid]", "..."},
                                                               {"€ 5.", "[invalid]", "5."},
                                                               {"", "[invalid]", "[invalid]"},
                                                               {"#### - 5", "[invalid]", "5"},
                                                               {"#### --5", "[invalid]", "-5"},
                                                               {"#### .", ".", "[invalid]"},
                                                               {"a 5 b", "[invalid]", "5"},
                                                               {"--55", "[invalid]", "-55"},
                                                               {"$", "[invalid]", "[invalid]"},
                                                               {"1,", "[invalid]", "1,"},
                                                               {"$-3", "[invalid]", "-3"},
                                                               {"7 -", "[invalid]", "7"},
                                                               {"#### \n#### 4", "4", "4"},
                                                               {"####5", "[invalid]", "5"},
                                                               {"-.", "[invalid]", "[invalid]"}}) {
    INFO(text);
    CHECK(extracted_answer(TaskMetric::kStrictMatch, text) == strict);
    CHECK(extracted_answer(TaskMetric::kFlexibleExtract, text) == flexible);
  }
  CHECK(extracted_answer(TaskMetric::kExactMatch, " \u2003two words\n") == "two words");
}

TEST_CASE("numbers are compared as in GSM8K, words as in TriviaQA") {
  const auto same_number = [](const char* a, const char* b) { return is_right(TaskMetric::kStrictMatch, a, b); };
  CHECK(same_number("1,234.", "a\n#### 1234"));
  CHECK(same_number("$5", "5"));
  CHECK(same_number("5.\n", "5\n"));
  CHECK(same_number("[invalid]", "[INVALID]"));
  CHECK(same_number("#### 1#### 2", "2"));
  CHECK(!same_number("5.0", "5"));
  CHECK(!same_number("5..", "5."));
  CHECK(!same_number("5.", "5 "));

  const auto same_words = [](const char* a, const char* b) { return is_right(TaskMetric::kExactMatch, a, b); };
  CHECK(same_words("The Who!", "the who"));
  CHECK(same_words("a-b", "ab"));
  CHECK(same_words("É", "é"));
  CHECK(same_words("x_y", "xy"));
  CHECK(!same_words("a b", "ab"));
  CHECK(!same_words("“x”", "x"));
}

TEST_CASE("pass@k is the chance that one of k samples passes") {
  CHECK(pass_at(1, 10, 3) == Approx(0.3).epsilon(1e-12));
  CHECK(pass_at(5, 10, 3) == Approx(1 - 21.0 / 252).epsilon(1e-12));  // 1 - C(7, 5) / C(10, 5)
  CHECK(pass_at(8, 64, 2) == Approx(0.2361111111).epsilon(1e-9));
  CHECK(pass_at(4, 4, 1) == 1);
  CHECK(pass_at(4, 4, 0) == 0);
  CHECK(pass_at(2, 4, 3) == 1);
}
