// The head and its loss against the formula in float64, and its gradients against finite differences of that formula.
#include "support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

struct Problem {
  int64_t tokens, hidden, vocab;
  float z_weight = 0.0f;
  DType act = DType::kF32;
  int ignore_every = 3;  // every third token has no target
  double logit_scale = 1.0;
  float cap = 0;

  HostTensor h() const { return random_tensor(act, {tokens, hidden}, "hidden"); }
  HostTensor w() const {
    return random_tensor(act, {vocab, hidden}, "weight", logit_scale / std::sqrt(static_cast<double>(hidden)));
  }
  HostTensor targets() const {
    Values out = random_ids({tokens}, 0, vocab, "targets").values();
    for (int64_t n = ignore_every - 1; n < tokens; n += ignore_every) out[static_cast<size_t>(n)] = -1;
    return HostTensor(DType::kI32, {tokens}, out);
  }
  std::string text() const {
    return str(name_of(act), " N ", tokens, " C ", hidden, " V ", vocab, " z ", z_weight, " logits ", logit_scale,
               " cap ", cap);
  }
};

const std::vector<Problem> kProblems = {
    {37, 29, 101},
    {37, 29, 101, 1e-2f},
    {1, 3, 1, 0, DType::kF32, 2},
    {2, 5, 17, 1e-3f},
    {130, 64, 64, 1e-4f},
    {37, 30, 101, 1e-2f, DType::kBF16},
    {130, 64, 1000, 0, DType::kBF16},
    {50, 16, 33, 1e-3f, DType::kF32, 3, 30.0},
    {9, 8, 20, 0, DType::kF32, 1},  // no token has a target
    {300, 6, 65537, 1e-3f},         // more than one chunk of rows
    {300, 6, 65537, 1e-3f, DType::kBF16},
    {4200, 3, 5, 1e-3f},
    {20, 5, 40004, 1e-3f},  // several vectors per thread
    {20, 5, 40004, 1e-3f, DType::kBF16},
    {20, 5, 40008, 1e-3f, DType::kBF16},  // whole vectors of bf16
    {50, 16, 33, 1e-3f, DType::kBF16, 3, 8.0},
    {50, 16, 33, 1e-3f, DType::kF32, 3, 3.0, 1.5f},
    {37, 29, 101, 1e-2f, DType::kF32, 3, 3.0, 30.0f},
    {37, 30, 101, 1e-2f, DType::kBF16, 3, 3.0, 1.5f},
    {20, 5, 40004, 1e-3f, DType::kBF16, 3, 3.0, 4.0f},
};

constexpr double kCapError = 0x1p-21;  // of a cap, relative to it: ex2.approx and its argument

// Values, and bounds on how much rounding the logits to bf16 changes each of them.
struct Result64 {
  struct Numbers {
    Values losses, dhidden, dweight;
    double loss = 0, z_loss = 0;
  };
  Numbers value, change;
  double count = 0;
};

// `rounding`: relative error of a logit. It moves logit x_j by at most e_j = rounding |x_j|. A cap has a slope of at
// most 1, and an error of its own, kCapError cap. log Z, a softmax-weighted mean of logits, moves by at most
// E = max e_j. So the loss moves by at most E + e_t, and p_j = exp(x_j - log Z) by at most the factor exp(e_j + E).
// dhidden and dweight sum such errors times |weight| or |hidden|.
Result64 reference64(const Problem& p, const Values& h, const Values& w, const Values& targets, double rounding) {
  const auto n = static_cast<size_t>(p.tokens), c = static_cast<size_t>(p.hidden), v = static_cast<size_t>(p.vocab);
  const auto z_weight = static_cast<double>(p.z_weight);
  const Result64::Numbers zeros{Values(n), Values(n * c), Values(v * c)};
  Result64 r{zeros, zeros};
  Values logits(v), moves(v);
  const double cap = double{p.cap};
  for (size_t t = 0; t < n; ++t) {
    if (targets[t] < 0) continue;
    const auto target = static_cast<size_t>(targets[t]);
    double top = -1e300, z = 0;
    for (size_t j = 0; j < v; ++j) {
      logits[j] = 0;
      for (size_t i = 0; i < c; ++i) logits[j] += h[t * c + i] * w[j * c + i];
      moves[j] = rounding * std::abs(logits[j]) + kCapError * cap;
      if (cap > 0) logits[j] = cap * std::tanh(logits[j] / cap);
      top = std::max(top, logits[j]);
    }
    for (size_t j = 0; j < v; ++j) z += std::exp(logits[j] - top);
    const double log_z = top + std::log(z);
    const double greatest = max_abs(moves), factor = 1 + 2 * z_weight * log_z;
    r.value.losses[t] = log_z - logits[target];
    r.change.losses[t] = greatest + moves[target];
    r.value.loss += r.value.losses[t];
    r.change.loss += r.change.losses[t];
    r.value.z_loss += z_weight * log_z * log_z;
    r.change.z_loss += z_weight * greatest * (2 * std::abs(log_z) + greatest);
    r.count += 1;
    for (size_t j = 0; j < v; ++j) {
      const double probability = std::exp(logits[j] - log_z);
      const double slope = cap > 0 ? 1 - std::pow(logits[j] / cap, 2) : 1;
      const double without_cap = probability * factor - (j == target ? 1 : 0), d = without_cap * slope;
      const double moved = std::expm1(greatest + moves[j]);
      const double more = 2 * z_weight * greatest;  // change of the factor
      const double moved_slope = cap > 0 ? moves[j] * (2 * std::abs(logits[j]) + moves[j]) / (cap * cap) : 0;
      const double dd =
          probability * (moved * (std::abs(factor) + more) + more) * slope + std::abs(without_cap) * moved_slope;
      for (size_t i = 0; i < c; ++i) {
        r.value.dhidden[t * c + i] += d * w[j * c + i];
        r.value.dweight[j * c + i] += d * h[t * c + i];
        r.change.dhidden[t * c + i] += dd * std::abs(w[j * c + i]);
        r.change.dweight[j * c + i] += dd * std::abs(h[t * c + i]);
      }
    }
  }
  return r;
}

// The values of `expected` +- `change` that are nearest to `actual`.
Values nearest(const HostTensor& actual, const Values& expected, const Values& change) {
  Values out = actual.values();
  for (size_t i = 0; i < out.size(); ++i) out[i] = std::clamp(out[i], expected[i] - change[i], expected[i] + change[i]);
  return out;
}

struct Outputs {
  HostTensor token_loss, sums, dhidden, dweight;
};

Workload workload_of(const Problem& p) {
  Workload w = TestBackend::small_workload();
  w.tokens = std::max(w.tokens, p.tokens);
  w.vocab = std::max(w.vocab, p.vocab);
  w.compute = p.act;
  return w;
}

// dhidden sums V terms in f32, on a GPU perhaps in one chain. Each addition rounds by up to 2^-24 of the partial sum,
// with either sign. So the errors add up as the root of V. Their root mean square is about a quarter of this bound: a
// rounding is 0.4 of its limit in that mean, and a partial sum half of the greatest result.
double one_chain_bound(int64_t terms) { return std::sqrt(static_cast<double>(terms)) * std::ldexp(1.0, -24); }

// Relative error of the logits that the backend rounds: half a unit of the 8 bits that bf16 has.
double logit_rounding(TestBackend& cpu, const Problem& p) {
  const DType logits = cpu.ops().head_chunk(p.tokens, p.vocab, p.act).logits;
  return logits == DType::kBF16 ? std::ldexp(1.0, -8) : 0.0;
}

Outputs run(TestBackend& cpu, const Problem& p, Write write, const HostTensor& h, const HostTensor& w) {
  const HostTensor targets = p.targets();
  Outputs o{random_tensor(DType::kF32, {p.tokens}, "rubbish", 100.0),
            HostTensor(DType::kF64, {kStepSums}, {10, 20, 30, 40}),
            random_tensor(p.act, {p.tokens, p.hidden}, "rubbish", 100.0),
            random_tensor(DType::kF32, {p.vocab, p.hidden}, "dweight before")};
  cpu.ops().linear_cross_entropy(*cpu.stream, {.hidden = h,
                                               .weight = w,
                                               .targets = targets,
                                               .token_loss = o.token_loss,
                                               .sums = o.sums,
                                               .dhidden = o.dhidden,
                                               .dweight = o.dweight,
                                               .write = write,
                                               .z_weight = p.z_weight,
                                               .cap = p.cap});
  return o;
}

Outputs run(TestBackend& cpu, const Problem& p, Write write) { return run(cpu, p, write, p.h(), p.w()); }

// In bf16 dlogits are rounded (2^-8 of each at most) before they are summed.
double gradient_tolerance(const Problem& p) {
  return p.act == DType::kBF16 ? std::ldexp(1.0, -8) : 1e-6 * (3 + p.logit_scale);
}

}  // namespace

TEST_CASE("linear_cross_entropy is the loss of the logits, with its sums and both gradients") {
  for (const Problem& p : kProblems) {
    INFO(p.text());
    TestBackend cpu(workload_of(p));
    const Outputs o = run(cpu, p, Write::kOverwrite);
    const Result64 r = reference64(p, p.h().values(), p.w().values(), p.targets().values(), logit_rounding(cpu, p));
    CHECK(max_abs_error(o.token_loss, nearest(o.token_loss, r.value.losses, r.change.losses)) <
          1e-6 * (10 + 10 * p.logit_scale));  // f32 logits and log Z
    const Values sums = o.sums.values();
    CHECK(std::abs(sums[kSumLoss] - 10 - r.value.loss) <= r.change.loss + 1e-6 * (10 + r.value.loss));
    CHECK(std::abs(sums[kSumZLoss] - 20 - r.value.z_loss) <= r.change.z_loss + 1e-6 * (20 + r.value.z_loss));
    CHECK(sums[kSumTargets] == 30 + r.count);
    CHECK(sums[kSumSquaredGradients] == 40);
    const double tolerance = gradient_tolerance(p);
    const bool one_chain = p.act == DType::kF32 && !under_test().backend.device->uses_host_memory();
    CHECK(max_error_before_rounding(o.dhidden, nearest(o.dhidden, r.value.dhidden, r.change.dhidden)) <=
          tolerance + (one_chain ? one_chain_bound(p.vocab) : 0));
    CHECK(max_error_before_rounding(o.dweight, nearest(o.dweight, r.value.dweight, r.change.dweight)) <= tolerance);
  }
}

TEST_CASE("linear_cross_entropy loses nothing where bf16 has the logits: its statistics and losses are f32") {
  for (const Problem& p : {Problem{37, 30, 101, 1e-2f, DType::kBF16}, Problem{130, 24, 1000, 0, DType::kBF16},
                           Problem{20, 5, 40008, 1e-3f, DType::kBF16}}) {
    INFO(p.text());
    TestBackend cpu(workload_of(p));
    // Sums of at most 30 products of up to 4: integers below 2^8.
    const Values h = random_ids({p.tokens, p.hidden}, -2, 3, "hidden").values();
    const Values w = random_ids({p.vocab, p.hidden}, -2, 3, "weight").values();
    const Outputs o = run(cpu, p, Write::kOverwrite, HostTensor(p.act, {p.tokens, p.hidden}, h),
                          HostTensor(p.act, {p.vocab, p.hidden}, w));
    const Result64::Numbers r = reference64(p, h, w, p.targets().values(), 0).value;
    const double greatest = 4.0 * static_cast<double>(p.hidden);  // of a logit; f32 rounds log Z, and arguments of exp
    CHECK(max_abs_error(o.token_loss, r.losses) < 1e-6 * (10 + greatest));
    CHECK(o.sums.values()[kSumLoss] == Approx(10 + r.loss).epsilon(1e-6));
    CHECK(o.sums.values()[kSumZLoss] == Approx(20 + r.z_loss).epsilon(1e-6));
    CHECK(max_error_before_rounding(o.dhidden, r.dhidden) <= gradient_tolerance(p));
    CHECK(max_error_before_rounding(o.dweight, r.dweight) <= gradient_tolerance(p));
  }
}

TEST_CASE("the bound of dhidden holds for one chain of f32 sums, with little to spare, and for no wrong sum", "[cpu]") {
  const Problem p = kProblems[9];
  const Values h = p.h().values(), w = p.w().values(), targets = p.targets().values();
  const auto c = static_cast<size_t>(p.hidden), v = static_cast<size_t>(p.vocab);
  Values chains, exact, dropped;
  for (size_t t = 0; t < static_cast<size_t>(p.tokens); ++t) {
    if (targets[t] < 0) continue;
    Values d(v);
    double z = 0;
    for (size_t j = 0; j < v; ++j) {
      for (size_t i = 0; i < c; ++i) d[j] += h[t * c + i] * w[j * c + i];
      z += d[j] = std::exp(d[j]);
    }
    for (double& x : d) x = static_cast<double>(static_cast<float>(x / z));
    d[static_cast<size_t>(targets[t])] -= 1;
    for (size_t i = 0; i < c; ++i) {
      float chain = 0;
      double sum = 0, without_last = 0;
      for (size_t j = 0; j < v; ++j) {
        chain = std::fma(static_cast<float>(d[j]), static_cast<float>(w[j * c + i]), chain);
        without_last = sum;
        sum += static_cast<double>(static_cast<float>(d[j])) * w[j * c + i];
      }
      chains.push_back(static_cast<double>(chain));
      exact.push_back(sum);
      dropped.push_back(without_last);
    }
  }
  const double bound = one_chain_bound(p.vocab);
  CHECK(max_relative_error(chains, exact) < bound);
  CHECK(max_relative_error(chains, exact).value > bound / 4);
  CHECK(max_relative_error(dropped, exact).value > bound);  // one term of 65537
}

TEST_CASE("linear_cross_entropy's gradients are those of loss plus z-loss") {
  const Problem p{5, 3, 7, 0.1f};
  TestBackend cpu;
  const Outputs o = run(cpu, p, Write::kOverwrite);
  const Values h = p.h().values(), w = p.w().values(), targets = p.targets().values();
  const auto total = [&](const Values& hidden, const Values& weight) {
    const Result64::Numbers r = reference64(p, hidden, weight, targets, 0).value;
    return r.loss + r.z_loss;
  };
  CHECK(max_relative_error(o.dhidden, finite_difference([&](const Values& x) { return total(x, w); }, h)) < 3e-6);
  CHECK(max_relative_error(o.dweight, finite_difference([&](const Values& x) { return total(h, x); }, w)) < 3e-6);
}

TEST_CASE("linear_cross_entropy adds to dweight with Write::kAccumulate") {
  for (const Problem& p : {kProblems[1], kProblems[9], kProblems[11]}) {
    TestBackend cpu(workload_of(p));
    const Values before = random_tensor(DType::kF32, {p.vocab, p.hidden}, "dweight before").values();
    const Values fresh = run(cpu, p, Write::kOverwrite).dweight.values();
    Values expected;
    for (size_t i = 0; i < before.size(); ++i) expected.push_back(before[i] + fresh[i]);
    CHECK(max_relative_error(run(cpu, p, Write::kAccumulate).dweight, expected) < 1e-6);
  }
}

TEST_CASE("linear_cross_entropy forward only gives the same loss bit for bit") {
  const Problem p{37, 29, 101, 1e-2f};
  TestBackend cpu;
  const Outputs both = run(cpu, p, Write::kOverwrite);
  HostTensor token_loss(DType::kF32, {p.tokens}), sums(DType::kF64, {kStepSums}, {10, 20, 30, 40});
  const HostTensor h = p.h(), w = p.w(), targets = p.targets();
  cpu.ops().linear_cross_entropy(
      *cpu.stream,
      {.hidden = h, .weight = w, .targets = targets, .token_loss = token_loss, .sums = sums, .z_weight = p.z_weight});
  CHECK(token_loss.bytes() == both.token_loss.bytes());
  CHECK(sums.bytes() == both.sums.bytes());
}

TEST_CASE("linear_cross_entropy marks the targets that have the largest logit, of equal ones the first") {
  // Hidden rows select a column of the weights, which are the logits of nine tokens; more than one chunk of threads.
  constexpr int64_t kVocab = 1200;
  for (const DType act : {DType::kF32, DType::kBF16}) {
    Values weights(static_cast<size_t>(kVocab * 8), 0.0);
    const auto logit = [&](int64_t id, int64_t column) -> double& {
      return weights[static_cast<size_t>(id * 8 + column)];
    };
    logit(700, 0) = 2;                                          // one largest
    logit(3, 1) = logit(1100, 1) = 1;                           // two
    for (int64_t id = 0; id < kVocab; ++id) logit(id, 2) = -1;  // all equal
    logit(kVocab - 1, 3) = 0.5;                                 // the last
    Values rows(6 * 8, 0.0);
    const std::vector<double> columns = {0, 0, 1, 1, 2, 3};
    for (size_t n = 0; n < 6; ++n) rows[n * 8 + static_cast<size_t>(columns[n])] = 1;
    const HostTensor hidden(act, {6, 8}, rows), weight(act, {kVocab, 8}, weights);
    const auto greedy_of = [&](const std::vector<double>& ids, float cap) {
      TestBackend cpu(Workload{.tokens = 6, .vocab = kVocab, .compute = act});
      const HostTensor targets(DType::kI32, {6}, ids);
      HostTensor loss(DType::kF32, {6}), sums(DType::kF64, {kStepSums}), greedy(DType::kF32, {6}, Values(6, 7.0));
      cpu.ops().linear_cross_entropy(*cpu.stream, {.hidden = hidden,
                                                   .weight = weight,
                                                   .targets = targets,
                                                   .token_loss = loss,
                                                   .sums = sums,
                                                   .cap = cap,
                                                   .greedy = greedy});
      return greedy.values();
    };
    for (const float cap : {0.0f, 30.0f}) {
      CHECK(greedy_of({700, 699, 3, 1100, 0, kVocab - 1}, cap) == Values{1, 0, 1, 0, 1, 1});
      CHECK(greedy_of({701, -1, 1100, 4, 1, 0}, cap) == Values{0, 0, 0, 0, 0, 0});
    }
  }
}

TEST_CASE("linear_cross_entropy gives the same bits for any number of threads", "[threads]") {
  for (const Problem& p : {Problem{130, 64, 501, 1e-3f, DType::kBF16}, Problem{37, 29, 101}, kProblems[9]}) {
    require_thread_invariance([&] {
      TestBackend cpu(workload_of(p));
      const Outputs o = run(cpu, p, Write::kAccumulate);
      return o.token_loss.bytes() + o.sums.bytes() + o.dhidden.bytes() + o.dweight.bytes();
    });
  }
}

TEST_CASE("linear_cross_entropy refuses a target outside the vocabulary", "[cpu]") {
  TestBackend cpu;
  const HostTensor h = random_tensor(DType::kF32, {2, 4}, "h"), w = random_tensor(DType::kF32, {5, 4}, "w");
  HostTensor loss(DType::kF32, {2}), sums(DType::kF64, {kStepSums});
  for (const double bad : {5.0, -2.0}) {
    const HostTensor targets(DType::kI32, {2}, {1, bad});
    CHECK_THROWS_AS(cpu.ops().linear_cross_entropy(
                        *cpu.stream, {.hidden = h, .weight = w, .targets = targets, .token_loss = loss, .sums = sums}),
                    Error);
  }
}
