// The wording of each task, as lm-evaluation-harness 0.4.13 words the same record.
#include "eval/questions.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "base/error.h"
#include "support/temp_dir.h"

namespace tokamak {
namespace {

std::vector<Question> read(EvalKind kind, const std::string& lines, int64_t limit = 0) {
  const TempDir dir;
  const std::string path = dir.path() + "/questions.jsonl";
  std::ofstream(path) << lines;
  return read_questions({.task = kind, .path = path, .name = "", .limit = limit});
}

std::string error_of(EvalKind kind, const std::string& lines) {
  try {
    read(kind, lines);
  } catch (const Error& error) {
    CHECK(error.exit_code() == 3);
    return error.what();
  }
  return "";
}

TEST_CASE("hellaswag: label and both halves of the context, brackets gone, the second half capitalized") {
  const auto questions =
      read(EvalKind::kHellaSwag,
           R"({"activity_label": "Baking", "ctx_a": "[header] A man [title] bakes  bread.", )"
           R"("ctx_b": "he THEN", "endings": ["eats [substeps] it.", " sleeps. ", "a [b\nc] d]"], "label": "1"})");
  REQUIRE(questions.size() == 1);
  const Question& question = questions[0];
  CHECK(question.answer == 1);
  REQUIRE(question.choices.size() == 3);
  CHECK(question.choices[0].context == "Baking: A man. bakes bread. He then");
  CHECK(question.choices[0].continuation == " eats it.");
  CHECK(question.choices[1].continuation == " sleeps.");
  CHECK(question.choices[1].text == "sleeps.");
  CHECK(question.choices[2].text == "a [b\nc] d]");  // not over the end of a line
}

TEST_CASE("hellaswag: open brackets without end cost one pass") {
  const std::string open(1 << 20, '[');  // sought from each, the end would be 10^12 characters away
  const auto questions =
      read(EvalKind::kHellaSwag, R"({"activity_label": "A", "ctx_a": "a", "ctx_b": "b", "endings": [")" + open +
                                     R"(", "[x]c[d]"], "label": 1})");
  CHECK(questions.at(0).choices[0].text == open);
  CHECK(questions.at(0).choices[1].text == "c");
}

TEST_CASE("arc: the answer is found by its label, letters or digits") {
  const auto questions =
      read(EvalKind::kArc, R"({"question": "Why?", "choices": {"text": ["a", "b", "c"], "label": ["1", "2", "3"]}, )"
                           R"("answerKey": "3"})");
  CHECK(questions.at(0).answer == 2);
  CHECK(questions[0].choices[2].context == "Question: Why?\nAnswer:");
  CHECK(questions[0].choices[2].continuation == " c");
}

TEST_CASE("mmlu: the subject as text, the choices by letter, a letter as the answer") {
  const auto questions = read(EvalKind::kMmlu, R"({"question": " What? ", "subject": "high_school_physics", )"
                                               R"("choices": ["w", "x", "y", "z"], "answer": 3})");
  CHECK(questions.at(0).answer == 3);
  CHECK(questions[0].choices[1].context ==
        "The following are multiple choice questions (with answers) about high school physics.\n\n"
        "What?\nA. w\nB. x\nC. y\nD. z\nAnswer:");
  CHECK(questions[0].choices[1].continuation == " B");
}

TEST_CASE("piqa and winogrande: two solutions; two contexts before one continuation") {
  const auto piqa = read(EvalKind::kPiqa, R"({"goal": "To sit", "sol1": "stand", "sol2": "take a chair", "label": 1})");
  CHECK(piqa.at(0).answer == 1);
  CHECK(piqa[0].choices[0].context == "Question: To sit\nAnswer:");
  CHECK(piqa[0].choices[1].continuation == " take a chair");

  const auto winogrande = read(EvalKind::kWinoGrande, R"({"sentence": "Ann saw Eve, so _ waved. ", "option1": "Ann", )"
                                                      R"("option2": "Eve", "answer": "2"})");
  CHECK(winogrande.at(0).answer == 1);
  CHECK(winogrande[0].choices[0].context == "Ann saw Eve, so Ann");
  CHECK(winogrande[0].choices[1].context == "Ann saw Eve, so Eve");
  CHECK(winogrande[0].choices[1].continuation == " waved.");
}

TEST_CASE("a limit selects the first questions; empty lines are skipped; errors name the line") {
  const std::string line = R"({"goal": "g", "sol1": "a", "sol2": "b", "label": 0})";
  CHECK(read(EvalKind::kPiqa, line + "\n\n" + line + "\n").size() == 2);
  CHECK(read(EvalKind::kPiqa, line + "\n" + line + "\nnot JSON", 2).size() == 2);
  CHECK(read(EvalKind::kPiqa, "\n" + line).at(0).where.ends_with("questions.jsonl:2"));
}

TEST_CASE("what is not such a question is refused by line and member") {
  CHECK(error_of(EvalKind::kPiqa, "[1]").ends_with(":1 is not a JSON object, but a JSON array"));
  CHECK(error_of(EvalKind::kPiqa, "{\"goal\": \"\xFF\"}").find(":1 is not valid JSON") != std::string::npos);
  CHECK(error_of(EvalKind::kPiqa, "\n").ends_with("holds no question"));
  CHECK(error_of(EvalKind::kHellaSwag, R"({"ctx_a": "a"})").ends_with(":1: 'ctx_b' is missing; expected a string"));
  const std::string arc = R"({"question": "q", "choices": {"text": ["a"], "label": ["A", "B"]}, "answerKey": "A"})";
  CHECK(error_of(EvalKind::kArc, arc)
            .ends_with("'choices.label' is [\"A\",\"B\"]; expected as many as choices.text has"));
  CHECK(error_of(EvalKind::kArc, R"({"question": "q", "choices": 1, "answerKey": "A"})")
            .ends_with("'choices' is 1; expected an object"));
  CHECK(error_of(EvalKind::kArc, R"({"question": "q", "choices": {"text": ["a"], "label": ["A"]}, "answerKey": "E"})")
            .ends_with("'answerKey' is \"E\"; expected one of choices.label"));
  CHECK(error_of(EvalKind::kMmlu, R"({"question": "q", "subject": "s", "choices": ["a"], "answer": 0})")
            .ends_with("'choices' is [\"a\"]; expected four strings"));
  CHECK(error_of(EvalKind::kWinoGrande, R"({"sentence": "no gap"})")
            .ends_with("'sentence' is \"no gap\"; expected a text with a gap, \"_\""));
}

}  // namespace
}  // namespace tokamak
