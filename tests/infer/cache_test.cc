// The decoder with a KV cache gives the same logits as without, for any split into calls.
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "infer/cached_model.h"
#include "model/rope_table.h"

using namespace tokamak;

namespace {

const std::vector<std::string> kCases = {"llama_mha_untied", "llama_gqa_tied", "mistral_window", "qwen3_window",
                                         "smollm3"};

// The sums differ only in their order. Attention adds over single rows with a cache, and over tiles for a whole
// context. A GEMM of one row also adds in another order than one of many. A few roundings of f32, of 2^-24 each,
// through the layers; in bf16 each rounding may fall the other way, by 2^-8 of a value.
double tolerance(DType compute) { return compute == DType::kF32 ? 1e-5 : 2e-2; }

// ||a - b|| / ||b||
double relative_error(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    norm += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(difference / norm);
}

struct Fixture {
  Fixture(const std::string& name, DType compute, const RopeScaling& scaling = {}, int64_t trained_length = 0)
      : golden(scaled(name, scaling, trained_length)),
        comm(make_single_comm()),
        small(golden.config, *comm, {.compute = compute, .passes = Passes::kForward, .cached_sequences = 3}),
        ids(golden.file.values<int32_t>("t37/input_ids")) {
    small.load(golden.file);
  }

  static Golden scaled(const std::string& name, const RopeScaling& scaling, int64_t trained_length) {
    Golden golden(name);
    golden.config.rope_scaling = scaling;
    if (trained_length > 0) golden.config.max_position_embeddings = trained_length;
    return golden;
  }

  // Logits after each token of a sequence that begins at `first`, without a cache.                          (T, V)
  std::vector<float> whole(size_t first, size_t length) {
    const std::span<const int32_t> tokens = std::span(ids).subspan(first, length);
    std::vector<int32_t> positions(length);
    for (size_t i = 0; i < length; ++i) positions[i] = static_cast<int32_t>(i);
    const std::vector<int32_t> bounds = {0, static_cast<int32_t>(length)};
    std::vector<float> logits(length * vocab());
    small.model.logits(
        *small.stream, {tokens, {}, positions, bounds}, 0,
        {logits.data(), DType::kF32, Shape{static_cast<int64_t>(length), static_cast<int64_t>(vocab())}});
    return logits;
  }

  struct Piece {
    int32_t slot;
    size_t first, count;  // of ids
  };
  // Logits of the last token of each piece.                                                                 (S, V)
  std::vector<float> run_model(const std::vector<Piece>& pieces) {
    std::vector<int32_t> tokens, bounds = {0}, slots;
    for (const Piece& piece : pieces) {
      tokens.insert(tokens.end(), ids.begin() + static_cast<std::ptrdiff_t>(piece.first),
                    ids.begin() + static_cast<std::ptrdiff_t>(piece.first + piece.count));
      bounds.push_back(static_cast<int32_t>(tokens.size()));
      slots.push_back(piece.slot);
    }
    const Tensor logits = forward_cached(small.model, *small.stream, {tokens, bounds, slots, {}}, small.cache);
    return {logits.as<float>(), logits.as<float>() + logits.count()};
  }

  size_t vocab() const { return static_cast<size_t>(golden.config.vocab_size); }
  std::span<const float> row(const std::vector<float>& logits, size_t i) const {
    return std::span(logits).subspan(i * vocab(), vocab());
  }

  Golden golden;
  std::unique_ptr<Comm> comm;
  CachedModel small;
  std::vector<int32_t> ids;  // two sequences of 37
};

}  // namespace

TEST_CASE("a layer with a window holds a ring, unless sequences may lose tokens at their end") {
  ModelConfig config = Golden("mistral_window").config;
  REQUIRE(config.sliding_window > 0);
  for (const auto& [ends, rows] :
       {std::pair(CacheEnds::kAppended, kCacheTile), {CacheEnds::kCutOff, 10 * kCacheTile}}) {
    MemoryPlan plan;
    KvCache cache(config, {.slots = 1, .capacity = 10 * kCacheTile, .max_tokens = 8, .ends = ends}, plan);
    Backend backend = make_cpu_backend();
    const Arena arena(plan, *backend.device);
    cache.commit(arena, backend);
    CHECK(cache.layer(0).dim(2) == rows);
  }
}

TEST_CASE("token by token, and in pieces of any size, the logits are those of the whole context") {
  for (const DType compute : {DType::kF32, DType::kBF16}) {
    for (const std::string& name : kCases) {
      Fixture f(name, compute);
      const std::vector<float> whole = f.whole(0, 37);
      for (const std::vector<size_t>& pieces :
           {std::vector<size_t>{37}, {20, 17}, {1, 36}, {30, 1, 1, 1, 1, 3}, {5, 6, 26}}) {
        f.small.cache.clear(1);
        size_t at = 0;
        for (const size_t count : pieces) {
          INFO(name << ", " << name_of(compute) << ", " << count << " tokens after " << at);
          const std::vector<float> logits = f.run_model({{1, at, count}});
          at += count;
          CHECK(relative_error(logits, f.row(whole, at - 1)) < tolerance(compute));
        }
        CHECK(f.small.cache.length(1) == 37);
      }
    }
  }
}

TEST_CASE("sequences of a batch, some new and some cached, have the logits that each has alone") {
  for (const DType compute : {DType::kF32, DType::kBF16}) {
    for (const std::string& name : kCases) {
      Fixture f(name, compute);
      INFO(name << ", " << name_of(compute));
      const std::vector<float> first = f.whole(0, 30), second = f.whole(37, 20), third = f.whole(10, 9);
      const std::vector<float> prompts = f.run_model({{2, 0, 12}, {0, 37, 19}});
      CHECK(relative_error(f.row(prompts, 0), f.row(first, 11)) < tolerance(compute));
      CHECK(relative_error(f.row(prompts, 1), f.row(second, 18)) < tolerance(compute));
      const std::vector<float> mixed = f.run_model({{0, 56, 1}, {1, 10, 8}, {2, 12, 17}});
      CHECK(relative_error(f.row(mixed, 0), f.row(second, 19)) < tolerance(compute));
      CHECK(relative_error(f.row(mixed, 1), f.row(third, 7)) < tolerance(compute));
      CHECK(relative_error(f.row(mixed, 2), f.row(first, 28)) < tolerance(compute));
      const std::vector<float> single = f.run_model({{2, 29, 1}, {1, 18, 1}});
      CHECK(relative_error(f.row(single, 0), f.row(first, 29)) < tolerance(compute));
      CHECK(relative_error(f.row(single, 1), f.row(third, 8)) < tolerance(compute));
    }
  }
}

TEST_CASE("past the window, a cache of no more than the window needs gives the logits of the whole context") {
  constexpr int32_t kTokens = 74;  // both sequences as one
  for (const auto& [name, sliding_layer] : {std::pair{"mistral_window", 0}, std::pair{"qwen3_window", 1}}) {
    const Golden golden(name);
    const auto comm = make_single_comm();
    SmallModel small(golden.config, *comm, {.passes = Passes::kForward, .max_length = 80, .cached_sequences = 1});
    small.load(golden.file);
    const auto ids = golden.file.values<int32_t>("t37/input_ids");
    std::vector<int32_t> positions(kTokens);
    std::iota(positions.begin(), positions.end(), 0);
    const std::vector<int32_t> bounds = {0, kTokens}, slots = {0};
    const int64_t vocab = golden.config.vocab_size;
    std::vector<float> whole(static_cast<size_t>(kTokens * vocab));
    small.model.logits(*small.stream, {ids, {}, positions, bounds}, 0,
                       {whole.data(), DType::kF32, Shape{kTokens, vocab}});
    for (const int32_t step : {1, 3, 5, 58, kTokens}) {
      MemoryPlan plan;
      KvCache cache(golden.config, {.slots = 1, .capacity = 80, .max_tokens = step, .compute = DType::kF32}, plan);
      const Arena arena(plan, *small.backend.device);
      cache.commit(arena, small.backend);
      CHECK(cache.layer(sliding_layer).dim(2) == (step < kTokens ? 64 : 80));
      for (int32_t at = 0; at < kTokens; at += step) {
        INFO(name << ", " << at << " tokens and up to " << step << " more");
        const int32_t count = std::min(step, kTokens - at);
        const std::vector<int32_t> cu = {0, count};
        const Tensor logits = forward_cached(
            small.model, *small.stream,
            {std::span(ids).subspan(static_cast<size_t>(at), static_cast<size_t>(count)), cu, slots, {}}, cache);
        const auto expected = std::span(whole).subspan(static_cast<size_t>((at + count - 1) * vocab));
        CHECK(relative_error({logits.as<float>(), static_cast<size_t>(vocab)},
                             expected.first(static_cast<size_t>(vocab))) < tolerance(DType::kF32));
      }
    }
  }
}

TEST_CASE("a slot that was cleared holds nothing of the sequence before") {
  Fixture f("llama_gqa_tied", DType::kF32);
  f.run_model({{0, 0, 37}});
  f.small.cache.clear(0);
  f.run_model({{0, 37, 3}});
  CHECK(relative_error(f.run_model({{0, 40, 1}}), f.row(f.whole(37, 4), 3)) < tolerance(DType::kF32));
}

TEST_CASE("more tokens than a slot has positions are a bug that is named") {
  Fixture f("llama_gqa_tied", DType::kF32);
  f.run_model({{0, 0, 37}});
  CHECK_THROWS_WITH(f.run_model({{0, 37, 28}}), Catch::Contains("28 new tokens; 3 slots of 64"));
}

// transformers recomputes the frequencies whenever the sequence is longer than max_position_embeddings; keys that are
// cached stay as they were turned. Keys of the first layer depend on nothing but the token and the turning.
TEST_CASE("with dynamic rope_scaling each token is turned for the length of then, a prompt for its own") {
  constexpr int64_t kTrained = 16, kPrompt = 20;
  Fixture f("llama_gqa_tied", DType::kF32, {.rope_type = RopeType::kDynamic, .factor = 2}, kTrained);
  const ModelConfig& config = f.golden.config;
  const auto dim = static_cast<size_t>(config.head_size());

  // A prompt in two pieces and, beside it, one that stays short; then three tokens one by one.
  const auto run_model = [&](const std::vector<Fixture::Piece>& pieces, const std::vector<int32_t>& lengths) {
    std::vector<int32_t> tokens, bounds = {0}, slots;
    for (const auto& piece : pieces) {
      for (size_t i = 0; i < piece.count; ++i) tokens.push_back(f.ids[piece.first + i]);
      bounds.push_back(static_cast<int32_t>(tokens.size()));
      slots.push_back(piece.slot);
    }
    return forward_cached(f.small.model, *f.small.stream, {tokens, bounds, slots, lengths}, f.small.cache);
  };
  run_model({{0, 0, 12}, {1, 40, 5}}, {kPrompt, 5});
  run_model({{0, 12, 8}}, {kPrompt});
  for (size_t t = kPrompt; t < kPrompt + 3; ++t) run_model({{0, t, 1}}, {});

  // The raw keys: a sequence of one token is turned by nothing.
  const auto key = [&](int64_t slot, int64_t position) {
    const Tensor cache = f.small.cache.layer(0);
    const float* at = cache.as<float>() + (slot * cache.dim(1) * cache.dim(2) + position) * cache.dim(3);
    return std::vector<float>(at, at + dim);
  };
  const auto raw = [&](size_t id) {
    f.small.cache.clear(2);
    run_model({{2, id, 1}}, {});
    return key(2, 0);
  };
  const auto expect = [&](int64_t slot, int64_t position, size_t id, int64_t length) {
    INFO("slot " << slot << ", position " << position);
    const RopeFrequencies frequencies = rope_frequencies(config, length);
    const std::vector<float> before = raw(id), after = key(slot, position);
    for (size_t i = 0; i < dim / 2; ++i) {
      const double angle = static_cast<double>(position) * frequencies.w[i], x = before[i], y = before[i + dim / 2];
      CHECK(after[i] == Approx(x * std::cos(angle) - y * std::sin(angle)).margin(1e-5));
      CHECK(after[i + dim / 2] == Approx(y * std::cos(angle) + x * std::sin(angle)).margin(1e-5));
    }
  };
  expect(0, 3, 3, kPrompt);    // of the first piece
  expect(0, 19, 19, kPrompt);  // of the second
  for (int64_t t = kPrompt; t < kPrompt + 3; ++t) expect(0, t, static_cast<size_t>(t), t + 1);
  expect(1, 4, 44, kTrained);
  // The lengths make a difference that the tolerance would show.
  CHECK(std::abs(rope_frequencies(config, 20).w[1] - rope_frequencies(config, 21).w[1]) * 20 > 1e-3);
}
