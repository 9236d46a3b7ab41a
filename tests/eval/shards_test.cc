// The loss by position: which predictions count where. The rule is tested with log-likelihoods that tell the position.
#include <catch2/catch.hpp>

#include "base/file.h"
#include "data/dataset_writer.h"
#include "eval/task.h"
#include "support/temp_dir.h"
#include "tokenizer/model_builder.h"

using namespace tokamak;

namespace {

// A data set of documents of these lengths, whose tokens differ from their neighbours.
struct Shards {
  explicit Shards(const std::vector<int64_t>& documents) {
    ModelBuilder model;
    for (const char* letter : {"a", "b", "c", "d", "e", "f", "g"}) model.add(letter, -10);
    tokenizer = load_tokenizer(model.write(dir.file("tokenizer.model")));
    Manifest head;
    head.vocab_size = tokenizer->vocab_size();
    head.tokenizer = {"toy", tokenizer->hash(), ""};
    make_directories(dir.file("set"), Kind::kBug);
    DatasetWriter writer(dir.file("set"), head, 1'000'000);
    for (const int64_t length : documents) {
      std::vector<int32_t> tokens(static_cast<size_t>(length));
      for (int32_t& token : tokens) token = 3 + next++ % 7;
      writer.append(tokens);
    }
    writer.finish();
  }

  EvalTask task(bool by_position) const {
    return make_eval_task({.task = EvalKind::kShards, .path = dir.file("set"), .by_position = by_position}, *tokenizer,
                          {.context = 512});
  }

  TempDir dir;
  std::unique_ptr<Tokenizer> tokenizer;
  int32_t next = 0;
};

double value(const std::vector<NamedValue>& values, const std::string& name) {
  for (const NamedValue& one : values) {
    if (one.name == name) return one.value;
  }
  FAIL("no " << name);
  return 0;
}

}  // namespace

TEST_CASE("ranges of positions score each prediction once, with all tokens of the document before it") {
  const Shards shards({700, 10, 315});  // windows: 512; 188, 10 and 314 of 315, whose last token is a target
  const EvalTask whole = shards.task(false), ranges = shards.task(true);
  REQUIRE(whole.sequences.size() == 4);
  REQUIRE(ranges.sequences.size() == 3 + 2 + 1 + 3);
  size_t at = 0;
  for (const ScoredSequence& one : whole.sequences) {
    int64_t scored = 0;
    for (; scored < one.scored; ++at) {
      const ScoredSequence& part = ranges.sequences.at(at);
      CHECK(part.item == one.item);
      CHECK(std::equal(part.tokens.begin(), part.tokens.end(), one.tokens.begin()));
      scored += part.scored;
      CHECK(std::ssize(part.tokens) == scored + 1);
    }
    CHECK(scored == one.scored);
  }
}

TEST_CASE("the loss of a range is that of its positions, and the whole loss is theirs together") {
  const Shards shards({700, 10, 315});
  const EvalTask task = shards.task(true);
  std::vector<SequenceScore> scores;
  for (const ScoredSequence& one : task.sequences) {
    double sum = 0;  // the prediction at position p has a loss of p
    for (int64_t p = std::ssize(one.tokens) - 1 - one.scored; p + 1 < std::ssize(one.tokens); ++p) sum -= double(p);
    scores.push_back({.log_likelihood = sum});
  }
  const auto sum_to = [](double n) { return n * (n - 1) / 2; };  // 0 + 1 + ... + n - 1
  const std::vector<NamedValue> values = task.results(scores).values;
  const double first = 3 * sum_to(128) + sum_to(10), second = sum_to(512) - sum_to(256);
  CHECK(value(values, "loss_from_0") == Approx(first / (3 * 128 + 10)));
  CHECK(value(values, "loss_from_128") == Approx((2 * sum_to(256) + sum_to(188) - 3 * sum_to(128)) / (2 * 128 + 60)));
  CHECK(value(values, "loss_from_256") == Approx((second + sum_to(314) - sum_to(256)) / (256 + 58)));
  CHECK(value(values, "loss") == Approx((sum_to(512) + sum_to(188) + sum_to(10) + sum_to(314)) / 1024));
  CHECK(std::ssize(values) == 5);  // and the perplexity
  CHECK(shards.task(false).results(std::vector<SequenceScore>(4)).values.size() == 2);
}
