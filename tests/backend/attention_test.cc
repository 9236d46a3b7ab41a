// Attention against the plain formula in float64, its gradient against finite differences of that formula, and both for
// any cut into documents and any number of threads. Cases with the tag [native] hold for our own kernels, the CPU's
// among them, and not for cuDNN's. cuDNN reads rows of a neighbouring document, times zero, and rounds as the plan's
// shape says.
#include "support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

struct Problem {
  HeadLayout heads;
  std::vector<int64_t> lengths;  // of the documents
  float scale = 0.0f;            // 0: 1 / sqrt(D)
  DType act = DType::kF32;
  int64_t window = 0;
  float cap = 0;

  // The logit of a product of a query and a key, and its derivative by the scaled product.
  double logit(double product) const {
    const double x = product * double{factor()}, limit = double{cap};
    return cap > 0 ? limit * std::tanh(x / limit) : x;
  }
  double slope(double logit) const { return cap > 0 ? 1 - std::pow(logit / double{cap}, 2) : 1; }
  int64_t tokens() const {
    int64_t sum = 0;
    for (const int64_t length : lengths) sum += length;
    return sum;
  }
  // The first token that token `t` of a document from `begin` on attends to.
  size_t first_seen(size_t t, size_t begin) const {
    const auto w = static_cast<size_t>(window);
    return window > 0 && t - begin >= w ? t - w + 1 : begin;
  }
  int64_t max_length() const { return *std::max_element(lengths.begin(), lengths.end()); }
  float factor() const { return scale != 0 ? scale : 1 / std::sqrt(static_cast<float>(heads.head_dim)); }
  HostTensor cu_seqlens() const {
    Values cu = {0};
    for (const int64_t length : lengths) cu.push_back(cu.back() + static_cast<double>(length));
    return HostTensor(DType::kI32, {static_cast<int64_t>(cu.size())}, cu);
  }
  HostTensor qkv() const { return random_tensor(act, {tokens(), heads.qkv_width()}, "qkv"); }
  HostTensor dout() const { return random_tensor(act, {tokens(), heads.q_width()}, "dout"); }
  std::string text() const {
    std::string out =
        str(heads.q_heads, "/", heads.kv_heads, " heads of ", heads.head_dim, ", ", name_of(act), ", documents");
    for (const int64_t length : lengths) out += str(" ", length);
    if (window > 0) out += str(", a window of ", window);
    return cap > 0 ? str(out, ", a cap of ", cap) : out;
  }
};

// Sizes around the tiles' 64 tokens and the vectors' 16; groups of 1, 2 and 4. Documents of 0 and 1 token, and
// several documents of one length, which are a batch to cuDNN.
const std::vector<Problem> kProblems = {
    {{1, 1, 2}, {1}},        {{2, 1, 6}, {37}},          {{4, 1, 6}, {0, 1, 5, 0, 64, 65, 0}},
    {{4, 2, 10}, {2, 1, 3}}, {{1, 1, 16}, {130}, 0.7f},  {{2, 2, 64}, {63, 128, 1}},
    {{3, 3, 80}, {70}},      {{4, 1, 128}, {100, 17}},   {{2, 1, 32}, {200, 0, 49}, -0.1f},
    {{1, 1, 8}, {0, 0, 3}},  {{4, 2, 64}, {65, 65, 65}}, {{8, 2, 128}, {128, 128}},
    {{2, 1, 256}, {33, 20}},
};

// bf16 with 64 and 128 features, which GPUs do on tensor cores: lengths around tiles of 32, 64 and 128 tokens, in
// documents that begin anywhere.
const std::vector<Problem> kTensorCoreProblems = {
    {{4, 1, 64}, {1, 63, 64, 65, 127, 128, 129, 200}},
    {{4, 4, 64}, {33, 0, 96, 31}, -0.3f},
    {{4, 1, 128}, {200, 1, 129, 128, 127, 65, 64, 63}},
    {{4, 4, 128}, {95, 32, 0, 97}},
    {{1, 1, 64}, std::vector<int64_t>(45, 2)},
    // With empty documents at the end, as in a captured micro-batch.
    {{4, 2, 64}, {100, 7, 61, 0, 0}},
    {{2, 1, 128}, {131, 70, 0, 3, 0}},
};

std::vector<Problem> problems_of(DType act) {
  std::vector<Problem> out = kProblems;
  if (act == DType::kBF16) out.insert(out.end(), kTensorCoreProblems.begin(), kTensorCoreProblems.end());
  for (Problem& p : out) p.act = act;
  return out;
}

// Windows around the tiles of 16, 32, 64 and 128 tokens and around the documents' lengths.
std::vector<Problem> windowed_problems() {
  std::vector<Problem> out;
  for (const int64_t window : {1, 2, 31, 33, 63, 64, 65, 127, 128, 129, 199})
    out.push_back({{2, 1, 64}, {3, 1, 0, 64, 70, 62, 200}, 0.3f, DType::kBF16, window});
  for (const int64_t window : {1, 16, 17, 64, 100}) {
    out.push_back({{2, 1, 12}, {130, 1, 5, 64}, 0.7f, DType::kF32, window});
    out.push_back({{1, 1, 128}, {200, 129, 31}, 0, DType::kBF16, window});
  }
  out.push_back({{1, 1, 256}, {90, 33}, 0, DType::kBF16, 20});
  return out;
}

// Caps that bend most scores, and caps that bend few, with and without windows. The scores' spread is about 3.
std::vector<Problem> capped_problems() {
  std::vector<Problem> out;
  for (const float cap : {0.5f, 2.0f, 20.0f}) {
    for (const int64_t window : {0, 20}) {
      out.push_back({{2, 1, 64}, {3, 1, 0, 64, 70, 62, 200}, 0.3f, DType::kBF16, window, cap});
      out.push_back({{2, 1, 128}, {130, 33}, -0.2f, DType::kBF16, window, cap});
      out.push_back({{2, 1, 12}, {130, 1, 5, 64}, 0.7f, DType::kF32, window, cap});
      out.push_back({{1, 1, 256}, {90, 33}, 0.2f, DType::kF32, window, cap});
    }
  }
  return out;
}

struct Forward64 {
  Values out, lse;
};

// Computes one row after the other by the formulas of ops.h.
Forward64 forward64(const Problem& p, const Values& qkv) {
  const auto n = static_cast<size_t>(p.tokens()), hq = static_cast<size_t>(p.heads.q_heads),
             dim = static_cast<size_t>(p.heads.head_dim), group = hq / static_cast<size_t>(p.heads.kv_heads),
             width = static_cast<size_t>(p.heads.qkv_width());
  Forward64 f{Values(n * hq * dim), Values(hq * n)};
  size_t begin = 0;
  for (const int64_t length : p.lengths) {
    for (size_t t = begin; t < begin + static_cast<size_t>(length); ++t) {
      for (size_t h = 0; h < hq; ++h) {
        const size_t key = hq * dim + h / group * dim, value = key + static_cast<size_t>(p.heads.kv_width());
        const size_t first = p.first_seen(t, begin);
        Values weights;
        double total = 0;
        for (size_t s = first; s <= t; ++s) {
          double score = 0;
          for (size_t i = 0; i < dim; ++i) score += qkv[t * width + h * dim + i] * qkv[s * width + key + i];
          weights.push_back(std::exp(p.logit(score)));
          total += weights.back();
        }
        f.lse[h * n + t] = std::log(total);
        for (size_t s = first; s <= t; ++s) {
          for (size_t i = 0; i < dim; ++i) {
            f.out[(t * hq + h) * dim + i] += weights[s - first] / total * qkv[s * width + value + i];
          }
        }
      }
    }
    begin += static_cast<size_t>(length);
  }
  return f;
}

// For out and lse as given (maybe rounded): dP = dO V^T, dS = P (dP - dO . O), dV = P^T dO, dQ = scale dS K, ...
Values backward64(const Problem& p, const Values& qkv, const Values& out, const Values& lse, const Values& dout) {
  const auto n = static_cast<size_t>(p.tokens()), hq = static_cast<size_t>(p.heads.q_heads),
             dim = static_cast<size_t>(p.heads.head_dim), group = hq / static_cast<size_t>(p.heads.kv_heads),
             width = static_cast<size_t>(p.heads.qkv_width());
  const auto scale = static_cast<double>(p.factor());
  Values d(n * width);
  size_t begin = 0;
  for (const int64_t length : p.lengths) {
    for (size_t t = begin; t < begin + static_cast<size_t>(length); ++t) {
      for (size_t h = 0; h < hq; ++h) {
        const size_t q = t * width + h * dim, o = (t * hq + h) * dim;
        double delta = 0;
        for (size_t i = 0; i < dim; ++i) delta += out[o + i] * dout[o + i];
        for (size_t s = p.first_seen(t, begin); s <= t; ++s) {
          const size_t k = s * width + hq * dim + h / group * dim, v = k + static_cast<size_t>(p.heads.kv_width());
          double score = 0, dp = 0;
          for (size_t i = 0; i < dim; ++i) {
            score += qkv[q + i] * qkv[k + i];
            dp += dout[o + i] * qkv[v + i];
          }
          const double logit = p.logit(score), weight = std::exp(logit - lse[h * n + t]);
          const double ds = weight * (dp - delta) * p.slope(logit) * scale;
          for (size_t i = 0; i < dim; ++i) {
            d[q + i] += ds * qkv[k + i];
            d[k + i] += ds * qkv[q + i];
            d[v + i] += weight * dout[o + i];
          }
        }
      }
    }
    begin += static_cast<size_t>(length);
  }
  return d;
}

struct Outputs {
  HostTensor out, lse, dqkv;
};

Outputs run(TestBackend& cpu, const Problem& p, const HostTensor& qkv, int64_t max_length) {
  const HostTensor cu = p.cu_seqlens(), dout = p.dout();
  const int64_t n = p.tokens();
  Outputs o{HostTensor(p.act, {n, p.heads.q_width()}), HostTensor(DType::kF32, {p.heads.q_heads, n}),
            random_tensor(p.act, {n, p.heads.qkv_width()}, "rubbish", 100.0)};
  cpu.ops().attention(*cpu.stream, {.qkv = qkv,
                                    .cu_seqlens = cu,
                                    .out = o.out,
                                    .lse = o.lse,
                                    .heads = p.heads,
                                    .scale = p.factor(),
                                    .max_length = max_length,
                                    .window = p.window,
                                    .cap = p.cap});
  cpu.ops().attention_backward(*cpu.stream, {.qkv = qkv,
                                             .cu_seqlens = cu,
                                             .out = o.out,
                                             .lse = o.lse,
                                             .dout = dout,
                                             .dqkv = o.dqkv,
                                             .heads = p.heads,
                                             .scale = p.factor(),
                                             .max_length = max_length,
                                             .window = p.window,
                                             .cap = p.cap});
  return o;
}
Outputs run(TestBackend& cpu, const Problem& p) { return run(cpu, p, p.qkv(), p.max_length()); }

// bf16 rounds the weights P, and in backward dS, before they are summed against values of about the size of the result.
// Each such rounding is 2^-9 of its value; f32 has only its own roundings.
double tolerance(DType act) { return act == DType::kBF16 ? std::ldexp(1.0, -8) : 3e-6; }
// A cap moves a logit by 2e-7 of the cap (base/math.h), and a weight by that fraction.
double tolerance(const Problem& p) { return tolerance(p.act) + 2e-7 * double{p.cap}; }

void check_both_passes(TestBackend& cpu, const Problem& p) {
  INFO(p.text());
  const Outputs o = run(cpu, p);
  const Forward64 expected = forward64(p, p.qkv().values());
  CHECK(max_error_before_rounding(o.out, expected.out) < tolerance(p));
  CHECK(max_abs_error(o.lse, expected.lse) < 1e-5);
  const Values gradient = backward64(p, p.qkv().values(), o.out.values(), o.lse.values(), p.dout().values());
  CHECK(max_error_before_rounding(o.dqkv, gradient) < tolerance(p));
}

}  // namespace

TEST_CASE("attention is softmax over the keys of its document up to itself, of every query head's group") {
  TestBackend cpu;
  for (const DType act : {DType::kF32, DType::kBF16}) {
    for (const Problem& p : problems_of(act)) {
      INFO(p.text());
      const Outputs o = run(cpu, p);
      const Forward64 expected = forward64(p, p.qkv().values());
      CHECK(max_error_before_rounding(o.out, expected.out) < tolerance(act));
      CHECK(max_abs_error(o.lse, expected.lse) < 1e-5);  // of scores of up to 20, in either type
    }
  }
}

TEST_CASE("attention_backward is the formula, on the out and lse it is given") {
  TestBackend cpu;
  for (const DType act : {DType::kF32, DType::kBF16}) {
    for (const Problem& p : problems_of(act)) {
      INFO(p.text());
      const Outputs o = run(cpu, p);
      const Values expected = backward64(p, p.qkv().values(), o.out.values(), o.lse.values(), p.dout().values());
      CHECK(max_error_before_rounding(o.dqkv, expected) < tolerance(act));
    }
  }
}

TEST_CASE("with a window, attention and its gradient are those of the formula over the last tokens of the document") {
  TestBackend cpu;
  for (const Problem& p : windowed_problems()) check_both_passes(cpu, p);
}

TEST_CASE("with a cap, attention and its gradient are those of bounded logits, and masks come after the cap") {
  TestBackend cpu;
  for (const Problem& p : capped_problems()) check_both_passes(cpu, p);
}

TEST_CASE("a window of at least the longest document gives the bits of none") {
  TestBackend cpu;
  for (const DType act : {DType::kF32, DType::kBF16}) {
    Problem p{{4, 2, 64}, {130, 7, 64}, 0, act};
    const Outputs none = run(cpu, p);
    for (const int64_t window : {int64_t{130}, int64_t{131}, int64_t{1} << 31}) {
      p.window = window;
      const Outputs wide = run(cpu, p);
      CHECK(wide.out.bytes() + wide.lse.bytes() + wide.dqkv.bytes() ==
            none.out.bytes() + none.lse.bytes() + none.dqkv.bytes());
    }
    p.window = 129;
    CHECK(run(cpu, p).out.bytes() != none.out.bytes());
  }
}

TEST_CASE("attention_backward is the gradient of attention") {
  TestBackend cpu;
  for (const Problem& p :
       {Problem{{2, 1, 4}, {5, 3}}, Problem{{1, 1, 2}, {7}}, Problem{{4, 2, 2}, {4}},
        Problem{{2, 1, 4}, {6, 4}, 0, DType::kF32, 3}, Problem{{2, 1, 4}, {6, 4}, 0, DType::kF32, 3, 1.5f}}) {
    INFO(p.text());
    const auto loss = [&](const Values& qkv) { return dot(forward64(p, qkv).out, p.dout().values()); };
    CHECK(max_relative_error(run(cpu, p).dqkv, finite_difference(loss, p.qkv().values())) < 3e-6);
  }
}

TEST_CASE("attention gives a document the same bits whatever follows it", "[native]") {
  TestBackend cpu;
  for (const Problem& model : {Problem{{2, 1, 16}, {}}, Problem{{2, 1, 64}, {}, 0, DType::kBF16},
                               Problem{{2, 1, 64}, {}, 0, DType::kBF16, 9}}) {
    Problem together = model, alone = model;
    together.lengths = {70, 33};
    alone.lengths = {70};
    const Outputs a = run(cpu, together), b = run(cpu, alone);
    CHECK(a.out.bytes().substr(0, b.out.bytes().size()) == b.out.bytes());
    CHECK(a.dqkv.bytes().substr(0, b.dqkv.bytes().size()) == b.dqkv.bytes());
  }
}

TEST_CASE("attention keeps what is not a number in its document", "[native]") {
  TestBackend cpu;
  for (const Problem& p : {Problem{{2, 1, 16}, {40, 30, 70}}, Problem{{2, 1, 64}, {40, 30, 70}, 0, DType::kBF16},
                           Problem{{2, 1, 128}, {40, 30, 70}, 0, DType::kBF16}}) {
    INFO(p.text());
    const auto is_bad = [](size_t token) { return token >= 40 && token < 70; };
    const auto n = static_cast<size_t>(p.tokens());
    HostTensor qkv = p.qkv();
    Values values = qkv.values();
    const size_t width = values.size() / n;
    for (size_t i = 0; i < values.size(); ++i) {
      if (is_bad(i / width)) values[i] = std::numeric_limits<double>::quiet_NaN();
    }
    qkv.set(values);
    const Outputs o = run(cpu, p, qkv, p.max_length());
    for (const HostTensor* tensor : {&o.out, &o.dqkv}) {
      const Values result = tensor->values();
      for (size_t i = 0; i < result.size(); ++i) REQUIRE(std::isnan(result[i]) == is_bad(i * n / result.size()));
    }
  }
}

TEST_CASE("attention gives the same bits if no document reaches the announced maximum length", "[native]") {
  TestBackend cpu;
  for (const DType act : {DType::kF32, DType::kBF16}) {
    const Problem p{{2, 1, 64}, {70, 0, 129}, 0, act};
    const Outputs a = run(cpu, p), b = run(cpu, p, p.qkv(), 1000);
    CHECK(a.out.bytes() + a.lse.bytes() + a.dqkv.bytes() == b.out.bytes() + b.lse.bytes() + b.dqkv.bytes());
  }
}

TEST_CASE("attention stays finite for large scores, and propagates NaN inputs") {
  TestBackend cpu;
  const Problem p{{1, 1, 4}, {20}, 1000.0f};
  // A document of one token has the one score as its lse, large of either sign.
  for (const Problem& large : {p, Problem{{1, 1, 64}, {1, 1, 1, 1, 70}, 1000.0f, DType::kBF16},
                               Problem{{1, 1, 64}, {1, 70}, 1000.0f, DType::kBF16, 0, 5.0f},
                               Problem{{1, 1, 4}, {20}, 1000.0f, DType::kF32, 0, 5.0f}}) {
    const Outputs o = run(cpu, large);
    for (const double x : o.out.values()) REQUIRE(std::isfinite(x));
    for (const double x : o.dqkv.values()) REQUIRE(std::isfinite(x));
  }
  Values values = p.qkv().values();
  values[11 * 12] = std::numeric_limits<double>::quiet_NaN();  // query 11
  const HostTensor qkv(DType::kF32, p.qkv().shape(), values), out(DType::kF32, {20, 4}), lse(DType::kF32, {1, 20});
  const HostTensor cu = p.cu_seqlens();
  cpu.ops().attention(*cpu.stream, {qkv, cu, out, lse, p.heads, 1.0f, 20});
  CHECK(std::isnan(out.values()[11 * 4]));
  CHECK(std::isfinite(out.values()[12 * 4]));
}

TEST_CASE("attention gives the same bits for any number of threads", "[threads]") {
  for (const DType act : {DType::kF32, DType::kBF16}) {
    const Problem p{{4, 2, 24}, {70, 1, 130, 9}, 0, act};
    const ThreadCount largest(4);
    TestBackend cpu;
    require_thread_invariance([&] {
      const Outputs o = run(cpu, p);
      return o.out.bytes() + o.lse.bytes() + o.dqkv.bytes();
    });
  }
}

TEST_CASE("attention refuses documents that do not cover the tokens, overlap, or are longer than announced", "[cpu]") {
  TestBackend cpu;
  const Problem p{{1, 1, 4}, {6}};
  const HostTensor qkv = p.qkv();
  HostTensor out(DType::kF32, {6, 4}), lse(DType::kF32, {1, 6});
  for (const Values& cu : {Values{0, 5}, Values{1, 6}, Values{0, 4, 3, 6}, Values{0, 6}}) {
    const HostTensor bad(DType::kI32, {static_cast<int64_t>(cu.size())}, cu);
    CHECK_THROWS_AS(cpu.ops().attention(*cpu.stream, {qkv, bad, out, lse, p.heads, 1.0f, 5}), Error);
  }
}
