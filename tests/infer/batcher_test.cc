// Texts that come and go while others run: none depends on the others, and a slot is free as soon as its text is gone.
#include "infer/batcher.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <deque>

#include "base/error.h"
#include "infer/cached_model.h"

using namespace tokamak;

namespace {

struct Received final : TextReceiver {
  std::vector<int32_t> ids;
  std::vector<Logprobs> prompt, chosen;
  std::optional<Finish> end;
  int64_t tokens = -1;

  std::vector<double> logprobs() const {
    std::vector<double> values;
    for (const Logprobs& one : chosen) values.push_back(one.token.logprob);
    return values;
  }

  void prompt_token(const Logprobs& logprobs) override { prompt.push_back(logprobs); }
  Verdict token(int32_t id, const Logprobs* logprobs) override {
    CHECK(!end);
    ids.push_back(id);
    if (logprobs != nullptr) chosen.push_back(*logprobs);
    return Verdict::kContinue;
  }
  void finish(Finish finish, int64_t made) override {
    CHECK(!end);
    end = finish;
    tokens = made;
  }
};

struct BatcherFixture {
  explicit BatcherFixture(int64_t slots)
      : golden("llama_gqa_tied"),
        comm(make_single_comm()),
        small(golden.config, *comm, {.passes = Passes::kForward, .cached_sequences = slots}),
        ids(golden.file.values<int32_t>("t37/input_ids")) {
    small.load(golden.file);
  }

  Batcher batcher(BatcherOptions options = {}) {
    options.vocab_size = golden.config.vocab_size;
    options.prefill_step = 16;
    return Batcher(small.model, small.cache, *small.backend.device, *small.stream, options);
  }

  // Text n has a prompt of its own, and its own number of tokens.
  TextRequest request(int64_t n) const {
    const auto first = static_cast<std::ptrdiff_t>(n);
    return {.prompt = {ids.begin() + first, ids.begin() + first + 3 + 2 * (first % 10)},
            .random = RandomStream(3, str(n)),
            .max_tokens = 5 + n % 7,
            .sampling = {.temperature = 1, .top_p = 1},
            .wants_logprobs = true};
  }

  Received alone(int64_t n) {
    Batcher one = batcher();
    Received text;
    one.add(request(n), text);
    while (one.step()) {
    }
    CHECK(text.end == Finish::kLength);
    return text;
  }

  Golden golden;
  std::unique_ptr<Comm> comm;
  CachedModel small;
  std::vector<int32_t> ids;
};

}  // namespace

TEST_CASE("a text is the same alone and beside more texts than the CPU decodes at once, which come at any time") {
  constexpr int64_t kTexts = 24;
  BatcherFixture f(12);
  Batcher batcher = f.batcher({.prefill_budget = 16});
  std::deque<Received> texts(kTexts);
  int64_t added = 0, most = 0;
  for (bool more = true; more || added < kTexts;) {
    for (int i = 0; i < 3 && added < kTexts; ++i, ++added)
      batcher.add(f.request(added), texts[static_cast<size_t>(added)]);
    more = batcher.step();
    most = std::max(most, batcher.running());
  }
  CHECK(most > 8);
  for (int64_t n = 0; n < kTexts; ++n) {
    INFO("text " << n);
    CHECK(texts[static_cast<size_t>(n)].tokens == 5 + n % 7);
    const Received alone = f.alone(n);
    CHECK(texts[static_cast<size_t>(n)].ids == alone.ids);
    CHECK(texts[static_cast<size_t>(n)].logprobs() == alone.logprobs());  // to the last bit
  }
}

TEST_CASE("a cancelled text is not heard of again, waiting, entering or running, and its slot is the next one's") {
  BatcherFixture f(2);
  Batcher batcher = f.batcher({.prefill_budget = 16});
  Received running, entering, waiting, kept, last;
  const int64_t first = batcher.add(f.request(1), running), second = batcher.add(f.request(9), entering);
  const int64_t third = batcher.add(f.request(2), waiting);
  batcher.add(f.request(4), kept);
  batcher.step();  // the first prompt has 5 tokens, the second 21: its first 16
  batcher.add(f.request(5), last);
  CHECK(batcher.running() == 2);
  CHECK(batcher.waiting() == 3);
  CHECK(entering.ids.empty());
  const size_t seen = running.ids.size();
  for (const int64_t text : {third, second, first, int64_t{77}}) batcher.cancel(text);
  CHECK(batcher.running() == 0);
  CHECK(batcher.waiting() == 2);
  batcher.step();
  CHECK(batcher.running() == 2);
  while (batcher.step()) {
  }
  CHECK((running.ids.size() == seen && !running.end));
  CHECK((entering.ids.empty() && !entering.end && waiting.ids.empty() && !waiting.end));
  CHECK(kept.ids == f.alone(4).ids);
  CHECK(last.ids == f.alone(5).ids);
}

TEST_CASE("while a long prompt is prefilled in chunks, each step makes a token of the running text") {
  BatcherFixture f(2);
  Batcher batcher = f.batcher({.prefill_budget = 16});
  Received runs, enters;
  batcher.add(f.request(6), runs);  // 15 prompt tokens, 11 new ones
  batcher.step();
  CHECK(runs.ids.size() == 2);
  TextRequest longest = f.request(0);
  longest.prompt.assign(f.ids.begin(), f.ids.begin() + 49);
  batcher.add(longest, enters);
  for (size_t step = 1; step <= 4; ++step) {
    CHECK(enters.ids.empty());
    batcher.step();
    CHECK(runs.ids.size() == 2 + step);
  }
  CHECK(enters.ids.size() == 2);
}

TEST_CASE("after an error and cancel_all every slot is free") {
  BatcherFixture f(2);
  int passes = 0;
  Batcher batcher = f.batcher({.between = [&] {
    if (++passes == 4) fail(Kind::kNumerics, "enough");
  }});
  std::deque<Received> texts(5);
  for (int64_t n = 0; n < 3; ++n) batcher.add(f.request(n), texts[static_cast<size_t>(n)]);
  CHECK_THROWS_WITH(
      [&] {
        while (batcher.step()) {
        }
      }(),
      "enough");
  batcher.cancel_all();
  CHECK(batcher.running() + batcher.waiting() == 0);
  for (int64_t n = 3; n < 5; ++n) batcher.add(f.request(n), texts[static_cast<size_t>(n)]);
  while (batcher.step()) {
  }
  for (int64_t n = 3; n < 5; ++n) CHECK(texts[static_cast<size_t>(n)].ids == f.alone(n).ids);
}

TEST_CASE("log probabilities are the model's, of each prompt token and each new one, whatever the sampling does") {
  BatcherFixture f(3);
  const auto vocab = f.golden.config.vocab_size;
  TextRequest request = f.request(9);  // 21 tokens: a chunk of 16, and one of 5
  request.max_tokens = 4;
  request.wants_logprobs = false;
  request.sampling = {.temperature = 0.7, .top_k = 5, .repetition_penalty = 1.5};
  Received plain;
  Batcher without = f.batcher();
  without.add(request, plain);
  while (without.step()) {
  }
  request.wants_logprobs = request.wants_prompt_logprobs = true;
  request.likeliest = 3;
  Received text;
  Batcher batcher = f.batcher();
  batcher.add(request, text);
  while (batcher.step()) {
  }
  CHECK(text.ids == plain.ids);  // they change nothing
  REQUIRE(text.prompt.size() == 20);
  REQUIRE(text.chosen.size() == 4);

  std::vector<int32_t> all = request.prompt;
  all.insert(all.end(), text.ids.begin(), text.ids.end());
  std::vector<Logprobs> seen = text.prompt;
  seen.insert(seen.end(), text.chosen.begin(), text.chosen.end());
  std::vector<int32_t> positions(all.size());
  for (size_t i = 0; i < all.size(); ++i) positions[i] = static_cast<int32_t>(i);
  const std::vector<int32_t> bounds = {0, static_cast<int32_t>(all.size())};
  std::vector<float> logits(all.size() * static_cast<size_t>(vocab));
  f.small.model.logits(*f.small.stream, {all, {}, positions, bounds}, 0,
                       {logits.data(), DType::kF32, Shape{std::ssize(all), vocab}});
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    INFO("token " << i + 1);
    const auto row = std::span(logits).subspan(i * static_cast<size_t>(vocab), static_cast<size_t>(vocab));
    double sum = 0;
    for (const float logit : row) sum += std::exp(double(logit));
    CHECK(seen[i].token.id == all[i + 1]);
    CHECK(seen[i].token.logprob == Approx(row[static_cast<size_t>(all[i + 1])] - std::log(sum)).margin(1e-4));
    REQUIRE(seen[i].likeliest.size() == 3);
    const auto best = std::max_element(row.begin(), row.end());
    CHECK(seen[i].likeliest[0].logprob == Approx(*best - std::log(sum)).margin(1e-4));
    for (const TokenLogprob& one : seen[i].likeliest) {
      if (one.id == all[i + 1]) CHECK(one.logprob == seen[i].token.logprob);
      CHECK(one.logprob >= seen[i].likeliest[2].logprob);
    }
  }
}

TEST_CASE("the token that ends a text has its log probability too; without new tokens only the prompt is computed") {
  BatcherFixture f(1);
  TextRequest request = f.request(3);
  request.sampling.temperature = 0;
  request.max_tokens = 1;
  request.wants_logprobs = false;
  Received first;
  Batcher batcher = f.batcher();
  batcher.add(request, first);
  while (batcher.step()) {
  }
  request.eos = first.ids.at(0);
  request.wants_logprobs = true;
  Received ended, scored;
  batcher.add(request, ended);
  request.max_tokens = 0;
  request.wants_prompt_logprobs = true;
  batcher.add(request, scored);
  while (batcher.step()) {
  }
  CHECK((ended.end == Finish::kEos && ended.tokens == 1 && ended.chosen.size() == 1));
  CHECK((scored.end == Finish::kLength && scored.tokens == 0 && scored.prompt.size() == request.prompt.size() - 1));
}

TEST_CASE(
    "of equal logits the lower id comes first, with the same log probability; ids beyond the vocabulary are none") {
  const std::vector<float> logits = {1, 3, -INFINITY, 3, 2, 9};
  const Logprobs logprobs = logprobs_of(logits, 5, 3, 3);
  REQUIRE(logprobs.likeliest.size() == 3);
  CHECK((logprobs.likeliest[0].id == 1 && logprobs.likeliest[1].id == 3 && logprobs.likeliest[2].id == 4));
  CHECK(logprobs.likeliest[0].logprob == logprobs.token.logprob);
  CHECK(logprobs_of(logits, 5, 2, 0).token.logprob == -9999);
  CHECK(logprobs_of(logits, 5, 0, 20).likeliest.size() == 5);
  CHECK_THROWS_WITH(logprobs_of(std::vector<float>{1, NAN}, 2, 0, 1), Catch::Contains("nan"));
}
