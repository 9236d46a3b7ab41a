// The decision of a step (ControlStep), and AdamW against torch.optim.AdamW. (With bf16 moments: moments_test.cc.)
#include "adamw_state.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Values control_of(const Values& sums, float max_norm) {
  TestBackend cpu;
  const HostTensor in(DType::kF64, {kStepSums}, sums);
  HostTensor control(DType::kF32, {kStepControls});
  cpu.ops().control_step(*cpu.stream, {in, control, max_norm});
  return control.values();
}

}  // namespace

TEST_CASE("control_step divides by the targets and clips to the norm") {
  // 50 targets, summed gradients of norm 200: the mean's norm is 4.
  const Values clipped = control_of({150, 5, 50, 40000}, 1.0f);
  CHECK(clipped[kGradNorm] == Approx(4).epsilon(1e-7));
  CHECK(clipped[kMeanLoss] == Approx(3).epsilon(1e-7));
  CHECK(clipped[kMeanZLoss] == Approx(0.1).epsilon(1e-7));
  CHECK(clipped[kGradScale] == Approx(1.0 / (4 + 1e-6) / 50).epsilon(1e-7));
  CHECK(clipped[kApply] == 1);
  CHECK(control_of({150, 5, 50, 40000}, 5.0f)[kGradScale] == Approx(1.0 / 50).epsilon(1e-7));  // below the bound
  CHECK(control_of({150, 5, 50, 40000}, 0.0f)[kGradScale] == Approx(1.0 / 50).epsilon(1e-7));  // no clipping
  CHECK(control_of({150, 5, 50, 0}, 1.0f)[kGradScale] == Approx(1.0 / 50).epsilon(1e-7));      // no gradient
}

TEST_CASE("control_step of units takes the norm of what their clipping leaves, and is not finite where a unit is not") {
  TestBackend cpu;
  const auto control_with = [&](const Values& squares) {
    Values rows(squares.size() * kStepSums, 7.0);
    for (size_t u = 0; u < squares.size(); ++u) rows[u * kStepSums + kSumSquaredGradients] = squares[u];
    const HostTensor sums(DType::kF64, {kStepSums}, {150, 5, 50, 0}),
        units(DType::kF64, {static_cast<int64_t>(squares.size()), kStepSums}, rows);
    HostTensor control(DType::kF32, {kStepControls});
    cpu.ops().control_step(
        *cpu.stream, {.sums = sums, .control = control, .max_norm = 0.5f, .unit_sums = units, .max_unit_norm = 0.8f});
    return control.values();
  };
  // 50 targets: units of norm 4, 0.6 and 0. The first is clipped to 0.8.
  const Values clipped = control_with({40000, 900, 0});
  CHECK(clipped[kGradNorm] == Approx(1).epsilon(1e-6));
  CHECK(clipped[kGradScale] == Approx(0.5 / 50).epsilon(1e-5));
  CHECK(clipped[kApply] == 1);
  for (const double bad : {kNaN, kInf}) CHECK(control_with({40000, bad, 0})[kApply] == 0);
}

TEST_CASE("clip_unit scales a gradient down to the norm, and leaves smaller ones and those that are not finite") {
  TestBackend cpu;
  for (const int64_t n : {1, 5, 1000, 100001}) {
    const HostTensor given = random_tensor(DType::kF32, {n}, "gradient");
    const HostTensor sums(DType::kF64, {kStepSums}, {0, 0, 50, 0});
    const auto clipped = [&](double squares) {
      const HostTensor x = given, unit(DType::kF64, {kStepSums}, {1, 2, 3, squares});
      cpu.ops().clip_unit(*cpu.stream, {.x = x, .unit_sums = unit, .sums = sums, .max_norm = 0.8f});
      return x;
    };
    Values expected = given.values();
    for (double& x : expected) x *= 0.8 / (4 + 1e-6);
    CHECK(max_relative_error(clipped(40000), expected) < 2e-7);
    for (const double squares : {900.0, 0.0, kNaN, kInf}) CHECK((clipped(squares).bytes() == given.bytes()));
  }
}

TEST_CASE("control_step skips a step whose loss or norm is not finite") {
  for (const Values& sums : std::vector<Values>{{kNaN, 0, 50, 1},
                                                {kInf, 0, 50, 1},
                                                {1, kNaN, 50, 1},
                                                {1, 0, 50, kNaN},
                                                {1, 0, 50, kInf},
                                                {1, 0, 50, 1e300},  // finite in f64, not in f32
                                                {0, 0, 0, 0}}) {    // no targets
    for (const float max_norm : {0.0f, 1.0f}) {
      const Values control = control_of(sums, max_norm);
      CHECK(control[kApply] == 0);
      CHECK(control[kGradScale] == 0);
    }
  }
}

TEST_CASE("AdamW computes the same steps as torch.optim.AdamW") {
  // torch 2.15, float64, betas (0.9, 0.95), eps 1e-8, weight_decay 0.1: param, exp_avg and exp_avg_sq after each step.
  const Values start = {0.5, -1.25, 3.0, 0.0};
  const std::vector<Values> gradients = {{0.1, -2.0, 1e-4, 0.0}, {0.3, 1.0, -2e-4, 0.5}, {-0.2, 0.25, 5e-4, -0.125}};
  const Values lr = {0.01, 0.02, 0.005};
  const Values table[3][3] = {
      {{0.489500001, -1.23875000005, 2.9870009999, 0}, {0.01, -0.2, 1e-05, 0}, {0.0005, 0.2, 5e-10, 0}},
      {{0.470347159008, -1.23090511112, 2.9882940208, -0.0146991996355},
       {0.039, -0.08, -1.1e-05, 0.05},
       {0.004975, 0.24, 2.475e-09, 0.0125}},
      {{0.468829096766, -1.22960846124, 2.98450716998, -0.0167047832507},
       {0.0151, -0.047, 4.01e-05, 0.0325},
       {0.00672625, 0.231125, 1.485125e-08, 0.01265625}}};
  TestBackend cpu;
  const double scale = 0.125;  // gradients arrive as sums; kGradScale makes them means
  HostTensor master(DType::kF32, {4}, start), exp_avg(DType::kF32, {4}), exp_avg_sq(DType::kF32, {4});
  HostTensor grad(DType::kF32, {4}), weights(DType::kBF16, {4});
  const HostTensor control(DType::kF32, {kStepControls}, {scale, 1, 0, 0, 0});
  for (size_t t = 0; t < 3; ++t) {
    Values sum = gradients[t];
    for (double& g : sum) g /= scale;
    grad.set(sum);
    AdamW args{master, exp_avg, exp_avg_sq, grad, weights, control};
    args.lr = lr[t];
    args.beta1 = 0.9;
    args.beta2 = 0.95;
    args.eps = 1e-8;
    args.groups = {{4, 0.1}};
    args.bias1 = 1 - std::pow(0.9, static_cast<double>(t + 1));
    args.bias2 = 1 - std::pow(0.95, static_cast<double>(t + 1));
    cpu.ops().adamw(*cpu.stream, args);
    const HostTensor* actual[3] = {&master, &exp_avg, &exp_avg_sq};
    for (size_t what = 0; what < 3; ++what) {
      const Values values = actual[what]->values();
      for (size_t i = 0; i < 4; ++i) {
        INFO("step " << t << ", row " << what << ", element " << i);
        CHECK(values[i] == Approx(table[t][what][i]).epsilon(5e-7).margin(1e-15));
      }
    }
    CHECK(max_error_before_rounding(weights, master.values()) == 0);
  }
}

TEST_CASE("AdamW forms 1 - beta2 in double") {
  TestBackend cpu;
  AdamWState s(1);
  s.exp_avg_sq.set({0});
  s.grad.set({1});
  AdamW args = s.args();
  args.beta2 = 0.9999;
  cpu.ops().adamw(*cpu.stream, args);
  CHECK(s.exp_avg_sq.values()[0] == Approx(1e-4).epsilon(1e-7));  // an f32 beta2 gives 0.00009999...
}

TEST_CASE("AdamW changes nothing where the step is not to be applied") {
  TestBackend cpu;
  for (const DType moments : {DType::kF32, DType::kBF16}) {
    AdamWState s(1003, moments);
    s.grad.set(Values(1003, kNaN));
    s.control.set({0, 0, kNaN, kNaN, 0});
    const std::string before = s.bytes();
    cpu.ops().adamw(*cpu.stream, s.args());
    CHECK((s.bytes() == before));
    AdamW args = s.args();
    args.updates = s.grad;
    cpu.ops().adamw(*cpu.stream, args);
    CHECK((s.bytes() == before));
    CHECK(s.grad.values() == Values(1003, 0));
  }
}

TEST_CASE("AdamW gives the same master weights with and without a bf16 copy, for any number of threads") {
  TestBackend cpu;
  const int64_t n = 3 * 16384 + 77;
  for (const DType moments : {DType::kF32, DType::kBF16}) {
    const AdamWState start(n, moments);
    require_thread_invariance([&] {
      const AdamWState with = start, without = start;
      cpu.ops().adamw(*cpu.stream, with.args());
      AdamW args = without.args();
      args.weights = Tensor();
      cpu.ops().adamw(*cpu.stream, args);
      CHECK((with.master.bytes() == without.master.bytes()));
      CHECK((with.exp_avg_sq.bytes() == without.exp_avg_sq.bytes()));
      CHECK((with.weights.bytes() == HostTensor(DType::kBF16, {n}, with.master.values()).bytes()));
      return with.bytes();
    });
  }
}

TEST_CASE(
    "AdamW's updates are what the masters have changed by, in a tensor of their own or in place of the gradients") {
  TestBackend cpu;
  for (const int64_t n : {1, 1003, 3 * 16384 + 77}) {
    const AdamWState start(n), plain = start;
    cpu.ops().adamw(*cpu.stream, plain.args());
    Values expected = start.master.values();
    const Values after = plain.master.values();
    for (size_t i = 0; i < expected.size(); ++i) {
      expected[i] = static_cast<double>(static_cast<float>(after[i]) - static_cast<float>(expected[i]));
    }
    for (const bool copies : {true, false}) {
      for (const bool in_place : {true, false}) {
        const AdamWState state = start;
        const HostTensor own(DType::kF32, {n});
        AdamW args = state.args();
        if (!copies) args.weights = Tensor();
        args.updates = in_place ? state.grad.view() : own.view();
        cpu.ops().adamw(*cpu.stream, args);
        CHECK((state.master.bytes() == plain.master.bytes()));
        CHECK((state.exp_avg.bytes() == plain.exp_avg.bytes()));
        CHECK((state.exp_avg_sq.bytes() == plain.exp_avg_sq.bytes()));
        if (copies) CHECK((state.weights.bytes() == plain.weights.bytes()));
        CHECK(((in_place ? state.grad : own).values() == expected));
        if (!in_place) CHECK((state.grad.bytes() == start.grad.bytes()));
      }
    }
  }
}

TEST_CASE("AdamW on a slice is AdamW on its elements, wherever it starts") {
  TestBackend cpu;
  const int64_t n = 1030;
  const AdamWState start(n), whole = start;
  cpu.ops().adamw(*cpu.stream, whole.args());
  for (const int64_t begin : {0, 1, 2, 3, 4, 5}) {
    for (const int64_t end : {begin, begin + 1, begin + 6, begin + 1024, n}) {
      for (const bool skewed : {false, true}) {  // the gradient is a slice too, or a tensor of its own
        const AdamWState part = start;
        AdamW args = part.args_of(begin, end);
        const Values all = start.grad.values();
        const HostTensor own(DType::kF32, {end - begin}, Values(all.begin() + begin, all.begin() + end));
        if (skewed) args.grad = own;
        cpu.ops().adamw(*cpu.stream, args);
        const auto check = [&](const HostTensor& actual, const HostTensor& before, const HostTensor& after) {
          Values expected = before.values();
          const Values changed = after.values();
          std::copy(changed.begin() + begin, changed.begin() + end, expected.begin() + begin);
          CHECK(max_relative_error(actual, expected) < 1e-6);
          const Values values = actual.values();
          CHECK(std::equal(values.begin(), values.begin() + begin, expected.begin()));
          CHECK(std::equal(values.begin() + end, values.end(), expected.begin() + end));
        };
        check(part.master, start.master, whole.master);
        check(part.exp_avg, start.exp_avg, whole.exp_avg);
        check(part.exp_avg_sq, start.exp_avg_sq, whole.exp_avg_sq);
        check(part.weights, start.weights, whole.weights);
      }
    }
  }
}

TEST_CASE("AdamW in one call is AdamW piece by piece, wherever the pieces end") {
  TestBackend cpu;
  const int64_t n = 2 * 16384 + 1030;
  const std::vector<std::vector<AdamW::Group>> cuts = {
      {{n, 0.1}},
      {{1, 0.1}, {2, 0}, {3, 0.3}, {4, 0.1}, {5, 0.2}, {6, 0}, {7, 0.4}, {n, 0.1}},  // ends inside a thread's vector
      {{64, 0.1}, {64, 0.5}, {16382, 0}, {16382, 0.5}, {n - 3, 0.2}, {n, 0}, {n, 0.5}},  // empty groups
      {{0, 0.5}, {16384, 0.1}, {16384 + 77, 0}, {n - 1024, 0.2}, {n, 0}}};
  for (const DType moments : {DType::kF32, DType::kBF16}) {
    const AdamWState start(n, moments);
    for (const auto& cut : cuts) {
      const AdamWState whole = start, pieces = start;
      AdamW args = whole.args();
      args.groups = cut;
      cpu.ops().adamw(*cpu.stream, args);
      int64_t begin = 0;
      for (const auto& [end, decay] : cut) {
        cpu.ops().adamw(*cpu.stream, pieces.args_of(begin, end, decay));
        begin = end;
      }
      CHECK((whole.bytes() == pieces.bytes()));
    }
  }
}
