// The generation loop: what ends a text, and that a prompt's text does not depend on the other prompts.
#include "infer/generator.h"

#include <catch2/catch.hpp>

#include "infer/cached_model.h"

using namespace tokamak;

namespace {

struct Text {
  std::vector<int32_t> ids;
  Finish finish = Finish::kLength;
  int64_t tokens = -1;
  bool operator==(const Text&) const = default;
};

struct Fixture {
  explicit Fixture(int64_t places)
      : golden("llama_gqa_tied"),
        comm(make_single_comm()),
        small(golden.config, *comm, {.passes = Passes::kForward, .cached_sequences = places}),
        ids(golden.file.values<int32_t>("t37/input_ids")) {
    small.load(golden.file);
  }

  GenerationRequest request(size_t first, size_t length) const {
    return {
        {ids.begin() + static_cast<std::ptrdiff_t>(first), ids.begin() + static_cast<std::ptrdiff_t>(first + length)},
        std::to_string(first)};
  }
  GenerationOptions options(int64_t max_tokens, const SamplingOptions& sampling) const {
    return {.max_tokens = max_tokens,
            .vocab_size = golden.config.vocab_size,
            .prefill_step = 16,
            .seed = 3,
            .sampling = sampling};
  }

  std::vector<Text> run(const std::vector<GenerationRequest>& requests, const GenerationOptions& options,
                        int32_t stop_at = -1) {
    std::vector<Text> texts(requests.size());
    Generator generator(small.model, small.cache, *small.backend.device, *small.stream);
    times = generator.run(
        requests, options,
        [&](size_t request, int32_t id) {
          texts[request].ids.push_back(id);
          return id == stop_at ? Generator::Verdict::kStop : Generator::Verdict::kContinue;
        },
        [&](size_t request, Finish finish, int64_t tokens) {
          CHECK(texts[request].tokens == -1);
          texts[request].finish = finish;
          texts[request].tokens = tokens;
        });
    return texts;
  }

  Golden golden;
  std::unique_ptr<Comm> comm;
  CachedModel small;
  std::vector<int32_t> ids;
  GenerationTimes times;
};

const SamplingOptions kGreedy{.temperature = 0};
const SamplingOptions kRandom{.temperature = 1, .top_p = 1};

}  // namespace

TEST_CASE("greedy text is the likeliest token after the whole context, each time") {
  Fixture f(1);
  const std::vector<Text> texts = f.run({f.request(0, 20)}, f.options(10, kGreedy));
  std::vector<int32_t> all = f.request(0, 20).prompt;
  for (const int32_t id : texts[0].ids) {
    std::vector<int32_t> positions(all.size());
    for (size_t i = 0; i < all.size(); ++i) positions[i] = static_cast<int32_t>(i);
    const std::vector<int32_t> bounds = {0, static_cast<int32_t>(all.size())};
    std::vector<float> logits(static_cast<size_t>(f.golden.config.vocab_size));
    f.small.model.logits(*f.small.stream, {all, {}, positions, bounds}, static_cast<int64_t>(all.size()) - 1,
                         {logits.data(), DType::kF32, Shape{1, f.golden.config.vocab_size}});
    CHECK(id == std::max_element(logits.begin(), logits.end()) - logits.begin());
    all.push_back(id);
  }
  CHECK(texts[0].finish == Finish::kLength);
  CHECK(texts[0].tokens == 10);
  CHECK(f.times.prompt_tokens == 20);
  CHECK(f.times.decoded_tokens == 9);
}

TEST_CASE("a prompt's text does not depend on what else is in the batch, nor on the number of places") {
  std::vector<GenerationRequest> requests;
  Fixture one(1), three(3);
  for (size_t i = 0; i < 7; ++i) requests.push_back(one.request(5 * i, 3 + 4 * i));
  for (const SamplingOptions& sampling : {kGreedy, kRandom}) {
    const std::vector<Text> together = three.run(requests, three.options(12, sampling), 17);
    CHECK(one.run(requests, one.options(12, sampling), 17) == together);
    for (size_t i = 0; i < requests.size(); ++i) {
      CHECK(one.run({requests[i]}, one.options(12, sampling), 17)[0] == together[i]);
    }
  }
}

TEST_CASE("a text ends at its EOS token, a stop string, its maximum length, or the end of the context") {
  Fixture f(2);
  const std::vector<GenerationRequest> requests = {f.request(0, 20)};
  const std::vector<int32_t> free = f.run(requests, f.options(8, kGreedy))[0].ids;
  REQUIRE(free.size() == 8);
  const int32_t third = free[2];
  const auto before = static_cast<size_t>(std::find(free.begin(), free.end(), third) - free.begin());
  const auto made = static_cast<int64_t>(before + 1);

  GenerationOptions ending = f.options(8, kGreedy);
  ending.eos = third;
  CHECK(f.run(requests, ending)[0] == Text{{free.begin(), free.begin() + made - 1}, Finish::kEos, made});
  CHECK(f.run(requests, f.options(8, kGreedy), third)[0] ==
        Text{{free.begin(), free.begin() + made}, Finish::kStop, made});
  // A place has 64 positions.
  const Text full = f.run({f.request(0, 60)}, f.options(8, kGreedy))[0];
  CHECK(full.finish == Finish::kLength);
  CHECK(full.tokens == 4);
}

TEST_CASE("tokens without a piece are never chosen") {
  Fixture f(1);
  GenerationOptions few = f.options(20, kRandom);
  few.vocab_size = 5;
  const std::vector<Text> texts = f.run({f.request(0, 20)}, few);
  for (const int32_t id : texts[0].ids) CHECK(id < 5);
}

TEST_CASE("a repetition penalty counts the prompt's tokens and the new ones") {
  Fixture f(1);
  // So large that what was seen is out of the question, as long as something else has a logit above 0 or near it.
  SamplingOptions penalised = kGreedy;
  penalised.repetition_penalty = 1e6;
  std::vector<int32_t> seen = f.request(0, 6).prompt;
  const std::vector<Text> texts = f.run({f.request(0, 6)}, f.options(10, penalised));
  for (const int32_t id : texts[0].ids) {
    CHECK(std::find(seen.begin(), seen.end(), id) == seen.end());
    seen.push_back(id);
  }
}

TEST_CASE(
    "who chooses for all sees each forward pass, and its choice counts; what is asked between passes may end all") {
  Fixture f(2);
  const std::vector<GenerationRequest> requests = {f.request(0, 20), f.request(5, 8), f.request(9, 3)};
  const std::vector<Text> free = f.run(requests, f.options(4, kRandom));
  int64_t chosen = 0, passes = 0;
  GenerationOptions options = f.options(4, kRandom);
  options.between = [&] { ++passes; };
  options.choose = [&](const Choose& own) {
    const std::vector<int32_t> ids = own();
    chosen += std::ssize(ids);
    return ids;
  };
  CHECK(f.run(requests, options) == free);
  CHECK(chosen == 12);
  // Two prompts of 20 and 8 tokens at once, 16 a pass: 3, and 3 to decode; then one prompt, and 3.
  CHECK(passes == 10);
  options.choose = [](const Choose& own) { return std::vector<int32_t>(own().size(), 7); };
  for (const Text& text : f.run(requests, options)) CHECK(text.ids == std::vector<int32_t>(4, 7));
  passes = 0;
  options.between = [&] {
    if (++passes == 4) fail(Kind::kBug, "enough");
  };
  CHECK_THROWS_WITH(f.run(requests, options), "enough");
  // Nothing of it is left.
  CHECK(f.run(requests, f.options(4, kRandom)) == free);
}
