#include "eval/text_template.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "support/catch.h"

namespace tokamak {
namespace {

const char* const kRecord = R"({"question": "  Why a_b? ", "n": 7, "choices": {"text": [" x", "y_z", 3]}, "f": 0.5})";

std::string worded(const char* form, const char* choice = "") {
  const JsonDocument record(kRecord, {"file:1"});
  return TextTemplate(form).text(record.root(), choice);
}

std::string refusal(const char* form) {
  try {
    worded(form);
  } catch (const Error& error) {
    CHECK(error.exit_code() == 3);
    return error.what();
  }
  return "";
}

TEST_CASE("members, items of lists, numbers and the choice stand where the template names them") {
  CHECK(worded("Q: {question}\n{n}.{choices.text.1}{choices.text.2}") == "Q:   Why a_b? \n7.y_z3");
  CHECK(worded("<{choice}|{choice|strip}>", " c") == "< c|c>");
  CHECK(worded("{{{n}}}") == "{7}");
  CHECK(worded("").empty());
}

TEST_CASE("filters apply from left to right") {
  CHECK(worded("{question|strip}") == "Why a_b?");
  CHECK(worded("{question|lstrip}") == "Why a_b? ");
  CHECK(worded("{question|rstrip}") == "  Why a_b?");
  CHECK(worded("{question|strip|capitalize|spaces}") == "Why a b?");
  CHECK(worded("{question|before:_}") == "  Why a");
  CHECK(worded("{question|after:_|strip}") == "b?");
  CHECK(worded("{question|strip|after_last: }") == "a_b?");
  CHECK(worded("{question|strip|before_last:?}") == "Why a_b");
  CHECK(worded("{question|before: }").empty());
}

TEST_CASE("one member that is a list gives a text of each item; anything else gives one text") {
  const JsonDocument record(kRecord, {"file:1"});
  CHECK(TextTemplate("{choices.text|strip}").texts(record.root()) == std::vector<std::string>{"x", "y_z", "3"});
  CHECK(TextTemplate("{n}").texts(record.root()) == std::vector<std::string>{"7"});
  CHECK(TextTemplate("A").texts(record.root()) == std::vector<std::string>{"A"});
}

TEST_CASE("what a record lacks is refused by its member") {
  CHECK(refusal("{answer}").ends_with("file:1: 'answer' is missing; expected a string"));
  CHECK(refusal("{f}").ends_with("'f' is 0.5; expected a string"));
  CHECK(refusal("{choices.text.3}").find("expected at least 4 items") != std::string::npos);
  CHECK(refusal("{choices.text.x}").find("expected an object") != std::string::npos);
  CHECK(refusal("{choices}").find("expected a string") != std::string::npos);
  CHECK(refusal("{question|before:#}").ends_with("expected a text with \"#\""));
}

TEST_CASE("what is not a template is named") {
  CHECK(TextTemplate::problem_of("{a.b|strip|before:x} {{}}").empty());
  CHECK(TextTemplate::problem_of("{a|upper}") == "has no filter 'upper'");
  CHECK(TextTemplate::problem_of("{a|before}") == "has the filter 'before' without its text");
  CHECK(TextTemplate::problem_of("{a|strip:x}") == "has the filter 'strip' with a text");
  CHECK(TextTemplate::problem_of("{a") == "has a '{' without its other half");
  CHECK(TextTemplate::problem_of("a}") == "has a '}' without its other half");
  CHECK(TextTemplate::problem_of("{}") == "has {} without a member");
}

}  // namespace
}  // namespace tokamak
