// Which tokens are scored. The tokenizer has a piece for each letter and for "ab", so the tokens of a text can be read.
#include "eval/encoding.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.h"
#include "eval/task_kinds.h"
#include "support/temp_dir.h"
#include "tokenizer/model_builder.h"

namespace tokamak {
namespace {

const std::string kSpace = "\xE2\x96\x81";

struct Words {
  Words() : tokenizer(load_tokenizer(built(dir))) {}

  static std::string built(const TempDir& dir) {
    ModelBuilder model;
    model.add("ab", -1).add(kSpace, -9);
    for (const char* letter : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}) model.add(letter, -10);
    return model.write(dir.file("tokenizer.model"));
  }
  // The text of the tokens: "_" for a space, "<s>" and "</s>" by name.
  std::string text(const std::vector<int32_t>& ids) const {
    std::string out;
    for (const int32_t id : ids) out += tokenizer->piece(id) == kSpace ? "_" : std::string(tokenizer->piece(id));
    return out;
  }

  TempDir dir;
  std::unique_ptr<Tokenizer> tokenizer;
};

TEST_CASE("a continuation's tokens are those of the whole text past as many as the context has") {
  const Words words;
  EvalEncoder encoder(*words.tokenizer, {.context = 20});
  const ScoredSequence plain = encoder.pair("cd", " e", "x:1");
  CHECK(words.text(plain.tokens) == "_cd_e");
  CHECK(plain.scored == 2);
  // Two letters that become one token at the seam: the context alone has as many tokens, so the piece is not scored.
  const ScoredSequence joined = encoder.pair("ca", "bd", "x:1");
  CHECK(words.text(joined.tokens) == "_cabd");
  CHECK(joined.tokens.size() == 4);
  CHECK(joined.scored == 1);
}

TEST_CASE("white space at the end of a context is scored") {
  const Words words;
  EvalEncoder encoder(*words.tokenizer, {.context = 20});
  const ScoredSequence sequence = encoder.pair("cd ", "e", "x:1");
  CHECK(words.text(sequence.tokens) == "_cd_e");
  CHECK(sequence.scored == 2);
}

TEST_CASE("a context that is too long loses its beginning; a continuation that is too long is an error") {
  const Words words;
  EvalEncoder encoder(*words.tokenizer, {.context = 4});
  const ScoredSequence cut = encoder.pair("cdefgh", "i", "x:1");
  CHECK(words.text(cut.tokens) == "efghi");  // the model sees four of them
  CHECK(cut.scored == 1);
  CHECK(encoder.pair("c", "defg", "x:1").scored == 4);
  CHECK_THROWS_WITH(encoder.pair("c", "defgh", "x:1"), Catch::StartsWith("x:1: a choice of 5 tokens"));
  CHECK_THROWS_WITH(encoder.pair("c", "", "x:2"), Catch::StartsWith("x:2: no tokens to score"));
}

TEST_CASE("a requested BOS token precedes each text, once") {
  const Words words;
  EvalEncoder encoder(*words.tokenizer, {.context = 20, .add_bos = true});
  CHECK(words.text(encoder.pair("c", " d", "x:1").tokens) == "<s>_c_d");
  CHECK(encoder.pair("c", " d", "x:1").scored == 2);
  CHECK(encoder.windows("<s>c").at(0).tokens.size() == encoder.windows("<s>cd").at(0).tokens.size() - 1);
  const std::vector<int32_t> written = encoder.windows("<s>c").at(0).tokens;
  CHECK(std::count(written.begin(), written.end(), words.tokenizer->bos_id()) == 1);  // before the first window
}

// The example of lm-evaluation-harness's loglikelihood_rolling: ten tokens, a context of four.
TEST_CASE("a long text is cut into windows that predict each token once, the last from as much as fits") {
  const Words words;
  EvalEncoder encoder(*words.tokenizer, {.context = 4});
  const std::vector<ScoredSequence> windows = encoder.windows("cdefghijc");  // ten tokens with the space before
  REQUIRE(windows.size() == 3);
  CHECK(words.text(windows[0].tokens) == "<s>_cde");
  CHECK(windows[0].scored == 4);
  CHECK(words.text(windows[1].tokens) == "efghi");
  CHECK(windows[1].scored == 4);
  CHECK(words.text(windows[2].tokens) == "ghijc");
  CHECK(windows[2].scored == 2);
  CHECK(encoder.windows("").empty());
  CHECK(encoder.windows("c").at(0).tokens.size() == 3);
}

double value_of(const std::vector<NamedValue>& results, const std::string& name) {
  for (const NamedValue& one : results) {
    if (one.name == name) return one.value;
  }
  FAIL("no result " << name);
  return 0;
}

std::vector<SequenceScore> scores(const std::vector<double>& log_likelihoods) {
  std::vector<SequenceScore> out;
  for (const double one : log_likelihoods) out.push_back({.log_likelihood = one});
  return out;
}

Question question(size_t answer, const std::vector<std::string>& choices) {
  Question out{.choices = {}, .answer = answer, .where = "x:1"};
  for (const std::string& choice : choices) out.choices.push_back({"c", " " + choice, choice});
  return out;
}

TEST_CASE("acc selects the most likely choice, acc_norm the most likely per character; ties select the first") {
  const Words words;
  EvalEncoder encoder(*words.tokenizer, {.context = 20});
  const EvalTask task = question_task({question(1, {"d", "efgh"}), question(0, {"d", "e"}), question(1, {"d", "e"})},
                                      {.metrics = {TaskMetric::kAcc, TaskMetric::kAccNorm}}, encoder);
  CHECK(task.items == 3);
  REQUIRE(task.sequences.size() == 6);
  CHECK(task.sequences[2].item == 1);
  // -2 beats -3, but not by the character; then a tie; then the wrong one.
  const std::vector<NamedValue> results = task.results(scores({-2, -3, -1, -1, -1, -2})).values;
  CHECK(value_of(results, "acc") == Approx(1.0 / 3));
  CHECK(value_of(results, "acc_norm") == Approx(2.0 / 3));
  // The sample 1, 0, 0 has the variance 1 / 3, so the error of its mean is sqrt(1 / 3) / sqrt(3).
  CHECK(value_of(results, "acc_stderr") == Approx(1.0 / 3));
}

TEST_CASE("acc_norm counts characters, not bytes") {
  const Words words;
  EvalEncoder encoder(*words.tokenizer, {.context = 20});
  const EvalTask task =
      question_task({question(1, {"\u044f\u044f", "abc"})}, {.metrics = {TaskMetric::kAccNorm}}, encoder);
  CHECK(value_of(task.results(scores({-2, -2.9})).values, "acc_norm") == 1);
}

TEST_CASE("of one continuation, acc is whether every token is the likeliest, perplexity of the mean") {
  const Words words;
  EvalEncoder encoder(*words.tokenizer, {.context = 20});
  const EvalTask task = question_task({question(0, {"d"}), question(0, {"d"}), question(0, {"d"})},
                                      {.metrics = {TaskMetric::kPerplexity, TaskMetric::kAcc}}, encoder);
  const std::vector<SequenceScore> found = {{-1, true}, {-2, false}, {-3, true}};
  const std::vector<NamedValue> results = task.results(found).values;
  CHECK(value_of(results, "perplexity") == Approx(std::exp(2.0)));
  CHECK(value_of(results, "acc") == Approx(2.0 / 3));
  CHECK(value_of(results, "perplexity_stderr") > 0);
}

TEST_CASE("a task of parts has figures of each, of groups, and of all by the pooled error") {
  const Words words;
  EvalEncoder encoder(*words.tokenizer, {.context = 20});
  std::vector<Question> questions;
  for (const char* part : {"x", "y", "x", "z", "y", "x", "z"}) {
    questions.push_back(question(0, {"d", "e"}));
    questions.back().part = part;
  }
  const EvalTask task =
      question_task(questions, {.part = "{p}", .groups = {{"g", {"x", "z", "none"}}, {"h", {"none"}}}}, encoder);
  // Right: x 1 of 3, y 2 of 2, z 1 of 2.
  const EvalFigures figures = task.results(scores({-1, -2, -1, -2, -2, -1, -1, -2, -1, -2, -2, -1, -2, -1}));
  CHECK(value_of(figures.values, "acc") == Approx(4.0 / 7));
  std::vector<std::string> names;
  for (const auto& [name, values] : figures.parts) names.push_back(name);
  CHECK(names == std::vector<std::string>{"g", "x", "y", "z"});
  CHECK(value_of(figures.parts[0].second, "acc") == Approx(2.0 / 5));
  CHECK(value_of(figures.parts[1].second, "acc") == Approx(1.0 / 3));
  // Variances of the parts: 1 / 3, 0 and 1 / 2; (n - 1) n error^2 = (n - 1) variance.
  CHECK(value_of(figures.values, "acc_stderr") == Approx(std::sqrt((2.0 / 3 + 0.5) / (7 - 3) / 7)));
  CHECK(value_of(figures.parts[0].second, "acc_stderr") == Approx(std::sqrt((2.0 / 3 + 0.5) / (5 - 2) / 5)));
}

TEST_CASE("perplexities count words, bytes and tokens of the texts, not the BOS token") {
  const Words words;
  EvalEncoder encoder(*words.tokenizer, {.context = 20});
  const std::vector<std::string> texts = {"c d", "ab"};
  const EvalTask task = rolling_text_task(texts, encoder);
  REQUIRE(task.sequences.size() == 2);
  CHECK(task.sequences[1].item == 1);
  const std::vector<NamedValue> results = task.results(scores({-3, -4.5})).values;
  CHECK(value_of(results, "word_perplexity") == Approx(std::exp(7.5 / 3)));
  CHECK(value_of(results, "byte_perplexity") == Approx(std::exp(7.5 / 5)));
  CHECK(value_of(results, "bits_per_byte") == Approx(7.5 / 5 / std::log(2.0)));
  CHECK(value_of(results, "token_perplexity") == Approx(std::exp(7.5 / 6)));  // _ c _ d, _ ab
}

}  // namespace
}  // namespace tokamak
