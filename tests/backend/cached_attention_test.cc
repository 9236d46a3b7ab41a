// Attention over a cache against attention in float64 over the whole sequences. The cache has all but the last tokens.
// Other contents of the cache must not matter, and must stay.
#include "support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

struct Sequence {
  int64_t slot, cached, fresh;
  int64_t all() const { return cached + fresh; }
};

struct Problem {
  HeadLayout heads;
  int64_t slots, positions;
  std::vector<Sequence> sequences;
  float scale = 0.0f;  // 0: 1 / sqrt(D)
  DType act = DType::kF32;
  int64_t window = 0;
  float cap = 0;

  double logit(double product) const {
    const double x = product * double{factor()}, limit = double{cap};
    return cap > 0 ? limit * std::tanh(x / limit) : x;
  }
  int64_t tokens() const {
    int64_t sum = 0;
    for (const Sequence& s : sequences) sum += s.fresh;
    return sum;
  }
  int64_t max_new() const {
    int64_t most = 1;
    for (const Sequence& s : sequences) most = std::max(most, s.fresh);
    return most;
  }
  int64_t max_length() const {
    int64_t most = 1;
    for (const Sequence& s : sequences) most = std::max(most, s.fresh > 0 ? s.all() : 1);
    return most;
  }
  float factor() const { return scale != 0 ? scale : 1 / std::sqrt(static_cast<float>(heads.head_dim)); }
  std::string text() const {
    std::string out = str(heads.q_heads, "/", heads.kv_heads, " heads of ", heads.head_dim, ", ", name_of(act));
    for (const Sequence& s : sequences) out += str(", ", s.cached, " + ", s.fresh);
    if (window > 0) out += str(", a window of ", window);
    return cap > 0 ? str(out, ", a cap of ", cap) : out;
  }
  // All of a sequence's tokens, cached and new.                                   (cached + fresh, (Hq + 2 Hkv) D)
  Values whole(size_t s) const {
    const Shape shape{std::max<int64_t>(sequences[s].all(), 1), heads.qkv_width()};
    return random_tensor(act, shape, str("sequence ", s)).values();
  }
};

// The inputs of both operations.
struct Inputs {
  HostTensor qkv, cu, slots, cached, cache;
  CachedSequences sequences() const { return {cu, slots, cached}; }
};

// Element (slot, kv, position, i) of a cache; kv counts the key heads, then the value heads.
size_t cache_at(const Problem& p, int64_t slot, int64_t kv, int64_t position, int64_t i) {
  return static_cast<size_t>(
      ((slot * 2 * p.heads.kv_heads + kv) * p.positions + position % p.positions) * p.heads.head_dim + i);
}

// Copies keys and values of positions [begin, end) of sequence s to their places in `cache`.
void fill_cache(const Problem& p, size_t s, int64_t begin, int64_t end, Values& cache) {
  const Values whole = p.whole(s);
  for (int64_t t = begin; t < end; ++t) {
    for (int64_t kv = 0; kv < 2 * p.heads.kv_heads; ++kv) {
      for (int64_t i = 0; i < p.heads.head_dim; ++i) {
        cache[cache_at(p, p.sequences[s].slot, kv, t, i)] =
            whole[static_cast<size_t>(t * p.heads.qkv_width() + p.heads.q_width() + kv * p.heads.head_dim + i)];
      }
    }
  }
}

// `rubbish`: the value of all cache elements that belong to no sequence.
Inputs inputs_of(const Problem& p, double rubbish) {
  Values qkv, cu = {0}, slots, cached;
  const Shape shape{p.slots, 2 * p.heads.kv_heads, p.positions, p.heads.head_dim};
  Values cache(static_cast<size_t>(shape.count()), rubbish);
  for (size_t s = 0; s < p.sequences.size(); ++s) {
    const Sequence& sequence = p.sequences[s];
    const Values whole = p.whole(s);
    qkv.insert(qkv.end(), whole.begin() + sequence.cached * p.heads.qkv_width(),
               whole.begin() + sequence.all() * p.heads.qkv_width());
    cu.push_back(cu.back() + static_cast<double>(sequence.fresh));
    slots.push_back(static_cast<double>(sequence.slot));
    cached.push_back(static_cast<double>(sequence.cached));
    fill_cache(p, s, 0, sequence.cached, cache);
  }
  const auto count = static_cast<int64_t>(p.sequences.size());
  return {HostTensor(p.act, {p.tokens(), p.heads.qkv_width()}, qkv), HostTensor(DType::kI32, {count + 1}, cu),
          HostTensor(DType::kI32, {count}, slots), HostTensor(DType::kI32, {count}, cached),
          HostTensor(p.act, shape, cache)};
}

HostTensor run(TestBackend& backend, const Problem& p, const Inputs& in) {
  HostTensor out = random_tensor(p.act, {p.tokens(), p.heads.q_width()}, "rubbish", 100.0);
  backend.ops().cache_append(*backend.stream,
                             {.qkv = in.qkv, .sequences = in.sequences(), .cache = in.cache, .heads = p.heads});
  backend.ops().cached_attention(*backend.stream, {.qkv = in.qkv,
                                                   .sequences = in.sequences(),
                                                   .cache = in.cache,
                                                   .out = out,
                                                   .heads = p.heads,
                                                   .scale = p.factor(),
                                                   .max_new = p.max_new(),
                                                   .max_length = p.max_length(),
                                                   .window = p.window,
                                                   .cap = p.cap});
  return out;
}

// Computes one row after the other by the formulas of ops.h, over whole sequences without a cache.
Values attention64(const Problem& p) {
  Values out;
  const int64_t dim = p.heads.head_dim, width = p.heads.qkv_width(), group = p.heads.q_heads / p.heads.kv_heads;
  for (size_t s = 0; s < p.sequences.size(); ++s) {
    const Values x = p.whole(s);
    const auto at = [&](int64_t token, int64_t column) { return x[static_cast<size_t>(token * width + column)]; };
    for (int64_t t = p.sequences[s].cached; t < p.sequences[s].all(); ++t) {
      for (int64_t h = 0; h < p.heads.q_heads; ++h) {
        const int64_t key = p.heads.q_width() + h / group * dim, value = key + p.heads.kv_width();
        Values sum(static_cast<size_t>(dim));
        double total = 0;
        Values scores;
        const int64_t first = p.window > 0 ? std::max<int64_t>(t - p.window + 1, 0) : 0;
        for (int64_t k = first; k <= t; ++k) {
          double score = 0;
          for (int64_t i = 0; i < dim; ++i) score += at(t, h * dim + i) * at(k, key + i);
          scores.push_back(p.logit(score));
        }
        const double top = *std::max_element(scores.begin(), scores.end());
        for (int64_t k = first; k <= t; ++k) {
          const double weight = std::exp(scores[static_cast<size_t>(k - first)] - top);
          total += weight;
          for (int64_t i = 0; i < dim; ++i) sum[static_cast<size_t>(i)] += weight * at(k, value + i);
        }
        for (const double x_i : sum) out.push_back(x_i / total);
      }
    }
  }
  return out;
}

// New tokens: one (decoding), a few, a prompt. Cached tokens: none, one, numbers around 16 lanes and 64 keys. Slots in
// any order; groups of 1 to 8 heads. Head sizes: usual ones, and some that no vector divides.
const std::vector<Problem> kProblems = {
    {{1, 1, 2}, 1, 4, {{0, 0, 1}}},
    {{2, 1, 6}, 3, 40, {{2, 37, 1}, {0, 0, 1}, {1, 16, 1}}},
    {{4, 1, 10}, 4, 70, {{1, 64, 1}, {3, 0, 5}, {0, 20, 3}, {2, 63, 4}}, -0.3f},
    {{8, 1, 16}, 2, 200, {{1, 150, 1}, {0, 128, 70}}},
    {{2, 2, 64}, 3, 300, {{0, 255, 1}, {2, 64, 65}, {1, 7, 0}}, 0.2f},
    {{8, 2, 128}, 3, 130, {{0, 127, 1}, {1, 0, 130}, {2, 63, 2}}},
    {{3, 3, 80}, 2, 90, {{1, 3, 2}, {0, 30, 37}}},
    {{4, 1, 256}, 1, 33, {{0, 32, 1}}},
    {{16, 1, 8}, 2, 50, {{0, 49, 1}, {1, 5, 2}}},
    {{4, 2, 16}, 3, 1200, {{1, 1199, 1}, {0, 511, 1}, {2, 512, 1}}},
    {{2, 2, 64}, 1, 1100, {{0, 1020, 5}}},
};

std::vector<Problem> problems_of(DType act) {
  std::vector<Problem> out = kProblems;
  for (Problem& p : out) p.act = act;
  return out;
}

// As attention_test.cc: in bf16 the weights may be rounded to bf16 before they meet the values.
double tolerance(DType act) { return act == DType::kBF16 ? std::ldexp(1.0, -8) : 3e-6; }

const double kNotANumber = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE(
    "cached_attention of new tokens equals attention over the whole sequence, for any other contents of the cache") {
  TestBackend backend;
  for (const DType act : {DType::kF32, DType::kBF16}) {
    for (const Problem& p : problems_of(act)) {
      INFO(p.text());
      CHECK(max_error_before_rounding(run(backend, p, inputs_of(p, kNotANumber)), attention64(p)) < tolerance(act));
    }
  }
}

TEST_CASE("with a window, cached_attention sees the last tokens of the sequence alone") {
  TestBackend backend;
  for (const DType act : {DType::kF32, DType::kBF16}) {
    for (Problem p : problems_of(act)) {
      for (const int64_t window : {1, 3, 64, 513}) {
        p.window = window;
        INFO(p.text());
        CHECK(max_error_before_rounding(run(backend, p, inputs_of(p, kNotANumber)), attention64(p)) < tolerance(act));
      }
    }
  }
}

TEST_CASE("with a cap, cached_attention bounds the logits before it masks") {
  TestBackend backend;
  for (const DType act : {DType::kF32, DType::kBF16}) {
    for (Problem p : problems_of(act)) {
      p.cap = 0.8f;
      for (const int64_t window : {0, 64}) {
        p.window = window;
        INFO(p.text());
        CHECK(max_error_before_rounding(run(backend, p, inputs_of(p, kNotANumber)), attention64(p)) < tolerance(act));
      }
    }
  }
}

TEST_CASE("a ring that holds the window and the new tokens gives the bits of a cache of all positions") {
  TestBackend backend;
  for (const DType act : {DType::kF32, DType::kBF16}) {
    Problem whole{{4, 2, 64}, 3, 1300, {{2, 1200, 1}, {0, 130, 70}, {1, 700, 3}}, 0, act, 59};
    Problem ring = whole;
    ring.positions = 128;
    for (const std::vector<Sequence>& sequences :
         {whole.sequences, {{1, 1299, 1}}, {{0, 191, 3}, {2, 63, 70}, {1, 0, 65}}, {{0, 128, 1}, {1, 127, 2}}}) {
      whole.sequences = ring.sequences = sequences;
      INFO(whole.text());
      const HostTensor out = run(backend, whole, inputs_of(whole, kNotANumber));
      CHECK(run(backend, ring, inputs_of(ring, kNotANumber)).bytes() == out.bytes());
      CHECK(max_error_before_rounding(out, attention64(whole)) < tolerance(act));
    }
  }
}

TEST_CASE("cache_append copies keys and values to their positions, and nothing else") {
  TestBackend backend;
  for (const DType act : {DType::kF32, DType::kBF16}) {
    for (const Problem& p : problems_of(act)) {
      INFO(p.text());
      const Inputs in = inputs_of(p, 7.0);
      Values expected = in.cache.values();
      for (size_t s = 0; s < p.sequences.size(); ++s) {
        fill_cache(p, s, p.sequences[s].cached, p.sequences[s].all(), expected);
      }
      backend.ops().cache_append(*backend.stream,
                                 {.qkv = in.qkv, .sequences = in.sequences(), .cache = in.cache, .heads = p.heads});
      CHECK(in.cache.values() == expected);
    }
  }
}

TEST_CASE("cached_attention of a sequence does not depend on the others of the batch") {
  TestBackend backend;
  for (const DType act : {DType::kF32, DType::kBF16}) {
    for (const int64_t window : {0, 70}) {
      const Problem together{{4, 2, 64}, 3, 500, {{2, 400, 1}, {0, 499, 1}, {1, 3, 1}}, 0, act, window};
      Problem alone = together;
      alone.sequences = {together.sequences[0]};
      const std::string one = run(backend, alone, inputs_of(alone, 0)).bytes();
      CHECK(run(backend, together, inputs_of(together, 0)).bytes().substr(0, one.size()) == one);
    }
  }
}

TEST_CASE("cached_attention of very large scores does not overflow") {
  TestBackend backend;
  // Scores of up to some thousands, in f32 with an error of 1e-7 of that.
  for (const Sequence& s : {Sequence{0, 99, 1}, Sequence{0, 30, 70}}) {
    const Problem p{{1, 1, 16}, 1, 100, {s}, 300.0f};
    CHECK(max_error_before_rounding(run(backend, p, inputs_of(p, 0)), attention64(p)) < 1e-3);
  }
}

TEST_CASE("cached_attention gives the same bits for any number of threads", "[threads]") {
  for (const Problem& p : kProblems) {
    require_thread_invariance([&] {
      TestBackend backend;
      return run(backend, p, inputs_of(p, 0)).bytes();
    });
  }
}

TEST_CASE("a cache that is full, or a slot that is not there, is a bug that is named", "[cpu]") {
  TestBackend backend;
  const Problem full{{1, 1, 2}, 1, 4, {{0, 4, 1}}};
  Inputs in = inputs_of({{1, 1, 2}, 1, 5, {{0, 4, 1}}}, 0);
  in.cache = HostTensor(DType::kF32, {1, 2, 4, 2});
  CHECK_THROWS_WITH(
      backend.ops().cache_append(*backend.stream,
                                 {.qkv = in.qkv, .sequences = in.sequences(), .cache = in.cache, .heads = full.heads}),
      Catch::Contains("4 tokens cached and 1 new ones, the cache room for 4"));
  Inputs other = inputs_of({{1, 1, 2}, 1, 5, {{0, 0, 1}}}, 0);
  other.slots.set({1});
  CHECK_THROWS_WITH(backend.ops().cache_append(
                        *backend.stream,
                        {.qkv = other.qkv, .sequences = other.sequences(), .cache = other.cache, .heads = full.heads}),
                    Catch::Contains("slot 1 of 1"));
}
