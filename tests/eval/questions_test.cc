// The wording of each task, as lm-evaluation-harness 0.4.13 words the same record.
#include "eval/questions.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <numeric>

#include "base/error.h"
#include "base/strings.h"
#include "support/temp_dir.h"

namespace tokamak {
namespace {

std::vector<Question> read(EvalKind kind, const std::string& lines, int64_t limit = 0) {
  const TempDir dir;
  const std::string path = dir.path() + "/questions.jsonl";
  std::ofstream(path) << lines;
  return read_questions({.task = kind, .path = path, .name = "", .limit = limit}, form_of(kind));
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
  CHECK(questions[0].before ==
        "The following are multiple choice questions (with answers) about high school physics.\n\n");
  CHECK(questions[0].choices[1].context == "What?\nA. w\nB. x\nC. y\nD. z\nAnswer:");
  CHECK(questions[0].part == "high_school_physics");
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
  CHECK(error_of(EvalKind::kHellaSwag, R"({"ctx_a": "a"})").ends_with(":1: 'endings' is missing; expected a string"));
  const std::string arc = R"({"question": "q", "choices": {"text": ["a"], "label": ["A", "B"]}, "answerKey": "A"})";
  CHECK(error_of(EvalKind::kArc, arc).ends_with(":1 has 1 choices, but labels for 2"));
  CHECK(error_of(EvalKind::kArc, R"({"question": "q", "choices": 1, "answerKey": "A"})")
            .ends_with("'choices' is 1; expected an object"));
  CHECK(error_of(EvalKind::kArc, R"({"question": "q", "choices": {"text": ["a"], "label": ["A"]}, "answerKey": "E"})")
            .ends_with(":1 has the answer \"E\"; expected one of A"));
  CHECK(error_of(EvalKind::kMmlu, R"({"question": "q", "subject": "s", "choices": ["a"], "answer": 0})")
            .ends_with("'choices' is [\"a\"]; expected at least 2 items"));
  CHECK(error_of(EvalKind::kWinoGrande, R"({"sentence": "no gap", "option1": "a", "option2": "b", "answer": "1"})")
            .ends_with("'sentence' is \"no gap\"; expected a text with \"_\""));
}

// Records "q1", "q2", ..., of which some may be repeated.
std::string numbered(const std::vector<int>& numbers) {
  std::string lines;
  for (const int n : numbers) lines += R"({"goal": "q)" + str(n) + R"(", "sol1": "a", "sol2": "b", "label": 1})" + "\n";
  return lines;
}

// The goals of the examples of each question.
std::vector<std::string> examples_of(const TaskForm& form, const std::string& lines, const std::string& pool,
                                     int64_t count) {
  const TempDir dir;
  std::ofstream(dir.path() + "/questions") << lines;
  std::ofstream(dir.path() + "/pool") << pool;
  const EvalOptions options{.task = EvalKind::kPiqa,
                            .form = "",
                            .path = dir.path() + "/questions",
                            .name = "",
                            .num_fewshot = count,
                            .fewshot_path = dir.path() + "/pool"};
  std::vector<std::string> found;
  for (const Question& question : read_questions(options, form)) {
    std::string goals;
    for (size_t at = 0; (at = question.before.find("Question: ", at)) != std::string::npos;) {
      at += 10;
      goals += question.before.substr(at, question.before.find('\n', at) - at) + " ";
    }
    found.push_back(goals);
  }
  return found;
}

TEST_CASE("an example is a solved question; between two there is an empty line") {
  const TempDir dir;
  const std::string path = dir.path() + "/q";
  std::ofstream(path) << R"({"goal": "g", "sol1": "a", "sol2": "b", "label": 1})"
                      << "\n"
                      << R"({"goal": "h", "sol1": "c", "sol2": "d", "label": 0})";
  const EvalOptions options{
      .task = EvalKind::kPiqa, .form = "", .path = path, .name = "", .num_fewshot = 1, .fewshot_path = path};
  const std::vector<Question> questions = read_questions(options, form_of(EvalKind::kPiqa));
  CHECK(questions.at(0).before == "Question: h\nAnswer: c\n\n");
  CHECK(questions.at(1).before == "Question: g\nAnswer: b\n\n");
}

TEST_CASE("before the answer of a continuation there is a space more, and of winogrande its rest") {
  const TempDir dir;
  const std::string path = dir.path() + "/q";
  const auto before = [&](EvalKind kind, const std::string& record) {
    std::ofstream(path) << record << "\n" << record;
    TaskForm form = form_of(kind);
    form.shots = ShotRule::kFirst;
    const EvalOptions options{
        .task = kind, .form = "", .path = path, .name = "", .num_fewshot = 1, .fewshot_path = path};
    return read_questions(options, form).at(0).before;
  };
  CHECK(before(EvalKind::kLambada, R"({"text": "one two three"})") == "one two  three\n\n");
  CHECK(before(EvalKind::kWinoGrande, R"({"sentence": "Ann saw Eve, so _ left.", "option1": "Ann", "option2": "Eve", )"
                                      R"("answer": "2"})") == "Ann saw Eve, so Eve left.\n\n");
}

TEST_CASE("random examples are the harness's: of seed 1234, one generator for all questions") {
  std::vector<int> forty(40);
  std::iota(forty.begin(), forty.end(), 0);
  TaskForm form = form_of(EvalKind::kPiqa);
  form.shots = ShotRule::kRandom;
  CHECK(examples_of(form, numbered({0, 0}), numbered(forty), 3) ==
        std::vector<std::string>{"q28 q7 q0 ", "q5 q37 q2 "});
  form.shots = ShotRule::kFirst;
  CHECK(examples_of(form, numbered({0, 0}), numbered(forty), 2) == std::vector<std::string>{"q0 q1 ", "q0 q1 "});
}

TEST_CASE("where a question may be its own example, one more is drawn, and the question left out") {
  std::vector<int> forty(40);
  std::iota(forty.begin(), forty.end(), 0);
  const TaskForm& form = form_of(EvalKind::kPiqa);
  // Three are drawn for two: 28, 7, 0.
  CHECK(examples_of(form, numbered({28}), numbered(forty), 2) == std::vector<std::string>{"q7 q0 "});
  CHECK(examples_of(form, numbered({1}), numbered(forty), 2) == std::vector<std::string>{"q28 q7 "});
  // If a pool has several copies, so many may be left out that others are drawn from the rest.
  const std::string others = examples_of(form, numbered({1}), numbered({1, 1, 1, 1, 1, 1, 1, 2, 3}), 2).at(0);
  CHECK((others == "q2 q3 " || others == "q3 q2 "));
  CHECK_THROWS_AS(examples_of(form, numbered({1}), numbered({1, 1, 1, 2}), 2), Error);
}

TEST_CASE("examples without a file, or of one with too few, are refused") {
  EvalOptions options{.task = EvalKind::kMmlu, .form = "", .path = "x", .name = "mmlu", .num_fewshot = 5};
  try {
    read_questions(options, form_of(EvalKind::kMmlu));
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.exit_code() == 2);
    CHECK(std::string(error.what()).find("mmlu: 5 examples need a file of examples") != std::string::npos);
    CHECK(error.hint() == "lm-evaluation-harness takes them from the split dev");
  }
  TaskForm first = form_of(EvalKind::kPiqa);
  first.shots = ShotRule::kFirst;
  CHECK(examples_of(first, numbered({9}), numbered({1, 2}), 2).at(0) == "q1 q2 ");
  CHECK_THROWS_AS(examples_of(first, numbered({9}), numbered({1, 2}), 3), Error);
  CHECK_THROWS_AS(examples_of(form_of(EvalKind::kPiqa), numbered({9}), numbered({1, 2}), 2), Error);
}

TEST_CASE("each part has its own examples and its own limit") {
  const TempDir dir;
  const auto record = [](const char* subject, int n) {
    return str(R"({"question": "q)", n, R"(", "subject": ")", subject,
               R"(", "choices": ["w", "x", "y", "z"], "answer": 0})", "\n");
  };
  std::ofstream(dir.path() + "/test") << record("a", 1) << record("a", 2) << record("b", 3) << record("a", 4)
                                      << record("b", 5) << record("b", 6);
  std::ofstream(dir.path() + "/dev") << record("b", 8) << record("a", 7) << record("b", 9);
  const std::vector<Question> questions = read_questions({.task = EvalKind::kMmlu,
                                                          .form = "",
                                                          .path = dir.path() + "/test",
                                                          .name = "",
                                                          .limit = 2,
                                                          .num_fewshot = 1,
                                                          .fewshot_path = dir.path() + "/dev"},
                                                         form_of(EvalKind::kMmlu));
  std::string asked;
  for (const Question& question : questions) {
    CHECK((question.before.find(question.part == "a" ? "q7" : "q8") != std::string::npos));
    asked += question.choices[0].context.substr(0, 2) + question.part + " ";
  }
  CHECK(asked == "q1a q2a q3b q5b ");
}

TEST_CASE("boolq, openbookqa, commonsense_qa, lambada and mmlu_ru are worded as in the harness") {
  const auto boolq = read(EvalKind::kBoolQ, R"({"passage": "P.", "question": "is it", "label": 1})");
  CHECK(boolq.at(0).choices[1].context + boolq[0].choices[1].continuation == "P.\nQuestion: is it?\nAnswer: yes");
  CHECK(boolq[0].answer == 1);
  const auto open = read(EvalKind::kOpenBookQa, R"({"question_stem": "The sun", "choices": {"text": ["is", "was"], )"
                                                R"("label": ["A", "B"]}, "answerKey": " B"})");
  CHECK(open.at(0).choices[0].context + open[0].choices[0].continuation == "The sun is");
  CHECK(open[0].answer == 1);
  const auto common =
      read(EvalKind::kCommonsenseQa, R"({"question": " Why ", "choices": {"text": ["a", "b", "c", "d", )"
                                     R"("e"], "label": ["A", "B", "C", "D", "E"]}, "answerKey": "E"})");
  CHECK(common.at(0).choices[4].context == "Question: Why\nA. a\nB. b\nC. c\nD. d\nE. e\nAnswer:");
  CHECK(common[0].choices[4].continuation == " E");
  CHECK(common[0].answer == 4);
  const auto lambada = read(EvalKind::kLambada, R"({"text": "She said  hello"})");
  CHECK(lambada.at(0).choices.size() == 1);
  CHECK(lambada[0].choices[0].context == "She said ");
  CHECK(lambada[0].choices[0].continuation == " hello");
  const auto russian = read(EvalKind::kMmluRu, R"({"instruction": "Что? ", "option_a": "а", "option_b": "б", )"
                                               R"("option_c": "в", "option_d": "г", "answer": "C"})");
  CHECK(russian.at(0).choices[0].context == "Что?\nA. а\nB. б\nC. в\nD. г\nAnswer:");
  CHECK(russian[0].answer == 2);
}

TEST_CASE("the known forms have no problem; a form's problems are named by key") {
  for (size_t kind = 0; kind < static_cast<size_t>(EvalKind::kCustom); ++kind) {
    CHECK(problems_of(form_of(static_cast<EvalKind>(kind))).empty());
  }
  const auto problem = [](const TaskForm& form) {
    const std::vector<FieldError> problems = problems_of(form);
    return problems.size() == 1 ? problems[0].what : str(problems.size(), " problems");
  };
  const TaskForm good{.context = "{q}", .choices = {"{a}", "{b}"}, .answer = "{c}"};
  CHECK(problems_of(good).empty());
  TaskForm bad = good;
  bad.context = "{q|shout}";
  CHECK(problem(bad) == "context \"{q|shout}\" has no filter 'shout'");
  bad = good;
  bad.answer = "";
  CHECK(problem(bad) == "answer is missing: which choice is right");
  bad = good;
  bad.choices = {};
  bad.answer = "";
  CHECK(problem(bad) == "continuation is missing, or choices");
  bad = good;
  bad.metrics = {TaskMetric::kPerplexity};
  CHECK(problem(bad) == "metrics have perplexity, which is for one continuation");
  bad = good;
  bad.groups = {{"g", {"p"}}};
  CHECK(problem(bad) == "groups need part");
}

}  // namespace
}  // namespace tokamak
