// Muon's operations: the momentum and its direction, the division by the Frobenius norm, and the update of masters.
#include "rounding_words.h"
#include "support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr DType kF32 = DType::kF32, kBF16 = DType::kBF16;

// Around vectors of 4 to 16 elements, and beyond the CPU's blocks of 16384.
const std::vector<int64_t> kCounts = {1, 31, 47, 257, 4097, 3 * 16384 + 77};
constexpr double kScale = 0.125, kMu = 0.95;  // kScale: kGradScale, exact in f32

struct MomentumState {
  MomentumState(int64_t n, DType dtype, DType of_direction)
      : grad(random_tensor(kF32, {n}, "grad", 8.0)),
        momentum(random_tensor(dtype, {n}, "momentum")),
        direction(random_tensor(of_direction, {n}, "rubbish", 100.0)),
        control(kF32, {kStepControls}, {kScale, 1, 0, 0, 0}) {}

  MuonMomentum args(Nesterov nesterov = Nesterov::kYes) const {
    return {.grad = grad,
            .momentum = momentum,
            .direction = direction,
            .control = control,
            .mu = kMu,
            .nesterov = nesterov,
            .rounding = {.seed = 42, .first = 0, .step = 7}};
  }
  // Elements [begin, end) alone.
  MuonMomentum args_of(int64_t begin, int64_t end) const {
    MuonMomentum a = args();
    for (Tensor* tensor : {&a.grad, &a.momentum, &a.direction}) *tensor = tensor->flat(begin, end);
    a.rounding.first += begin;
    return a;
  }
  std::string bytes() const { return momentum.bytes() + direction.bytes(); }

  HostTensor grad, momentum, direction, control;
};

struct UpdateState {
  UpdateState(int64_t n, DType dtype)
      : direction(random_tensor(dtype, {n}, "direction")),
        master(random_tensor(kF32, {n}, "master")),
        weights(random_tensor(kBF16, {n}, "rubbish", 100.0)),
        updates(random_tensor(kF32, {n}, "rubbish", 100.0)),
        control(kF32, {kStepControls}, {kScale, 1, 0, 0, 0}) {}

  MuonUpdate args() const {
    return {.direction = direction,
            .master = master,
            .weights = weights,
            .control = control,
            .updates = updates,
            .rate = kRate,
            .decay = kDecay};
  }
  std::string bytes() const { return master.bytes() + weights.bytes() + updates.bytes(); }

  static constexpr double kRate = 0.02, kDecay = 0.003;
  HostTensor direction, master, weights, updates, control;
};

// Calls body(momentum, direction) for all dtypes.
template <class Body>
void for_dtypes(const Body& body) {
  for (const DType momentum : {kF32, kBF16}) {
    for (const DType direction : {kF32, kBF16}) body(momentum, direction);
  }
}

}  // namespace

TEST_CASE("muon_momentum averages the scaled gradients, and the direction looks ahead where Nesterov's does") {
  TestBackend cpu;
  for (const int64_t n : kCounts) {
    for (const DType of_direction : {kF32, kBF16}) {
      for (const Nesterov nesterov : {Nesterov::kNo, Nesterov::kYes}) {
        INFO(n << " elements, direction " << name_of(of_direction));
        const MomentumState s(n, kF32, of_direction);
        Values m = s.momentum.values(), direction;
        const Values grad = s.grad.values();
        for (size_t i = 0; i < m.size(); ++i) {
          const double g = kScale * grad[i];
          m[i] = kMu * m[i] + (1 - kMu) * g;
          direction.push_back(nesterov == Nesterov::kYes ? (1 - kMu) * g + kMu * m[i] : m[i]);
        }
        cpu.ops().muon_momentum(*cpu.stream, s.args(nesterov));
        // f32 rounds the constants and each operation.
        CHECK(max_error_before_rounding(s.momentum, m) < 3e-7);
        CHECK(max_error_before_rounding(s.direction, direction) < 3e-7);
        CHECK(s.grad.values() == grad);
      }
    }
  }
}

TEST_CASE("muon_momentum forms 1 - mu in double") {
  TestBackend cpu;
  MomentumState s(1, kF32, kF32);
  s.momentum.set({0});
  s.grad.set({1 / kScale});
  MuonMomentum args = s.args();
  args.mu = 0.9999;
  cpu.ops().muon_momentum(*cpu.stream, args);
  CHECK(s.momentum.values()[0] == Approx(1e-4).epsilon(1e-7));  // an f32 mu gives 0.00009999...
}

TEST_CASE("muon_momentum in bf16 is that in f32, which then is rounded by the draws that ops.h states") {
  TestBackend cpu;
  for (const int64_t n : kCounts) {
    for (const StochasticRounding rounding :
         {StochasticRounding{1, 0, 1}, StochasticRounding{uint64_t{1} << 40, 4 * ((int64_t{1} << 34) + 5), 3},
          StochasticRounding{1, 7, int64_t{1} << 33}}) {
      INFO(n << " elements from " << rounding.first);
      const MomentumState narrow(n, kBF16, kBF16);
      MomentumState wide = narrow;
      wide.momentum = HostTensor(kF32, {n}, narrow.momentum.values());
      MuonMomentum args = narrow.args();
      args.rounding = rounding;
      cpu.ops().muon_momentum(*cpu.stream, args);
      cpu.ops().muon_momentum(*cpu.stream, wide.args());
      CHECK((narrow.direction.bytes() == wide.direction.bytes()));  // computed from the momentum before rounding
      Values m = wide.momentum.values();
      for (size_t i = 0; i < m.size(); ++i) {
        const uint32_t word = word_of(rounding, static_cast<int64_t>(i), "muon");
        m[i] = to_float(round_at_random(static_cast<float>(m[i]), static_cast<uint16_t>(word)));
      }
      CHECK((narrow.momentum.values() == m));
    }
  }
}

TEST_CASE("muon_momentum in bf16 is without bias over many steps") {
  TestBackend cpu;
  const int64_t n = 4097, steps = 200;
  const MomentumState start(n, kBF16, kBF16);
  const Values m = start.momentum.values(), g = start.grad.values();
  double error = 0, variance = 0;
  for (int64_t step = 1; step <= steps; ++step) {
    const MomentumState s = start;
    MuonMomentum args = s.args();
    args.rounding.step = step;
    cpu.ops().muon_momentum(*cpu.stream, args);
    const Values rounded = s.momentum.values();
    for (size_t i = 0; i < m.size(); ++i) {
      const double exact = kMu * m[i] + (1 - kMu) * kScale * g[i];
      // In spacings of bf16. The upper neighbour has the probability that is the distance from the lower one.
      const double spacing = std::ldexp(1.0, std::ilogb(exact) - 7), fraction = std::abs(exact) / spacing;
      const double upper = fraction - std::floor(fraction);
      error += (rounded[i] - exact) / spacing;
      variance += upper * (1 - upper);
    }
  }
  CHECK(std::abs(error) < 4 * std::sqrt(variance));
  CHECK(4 * std::sqrt(variance) < 0.01 * static_cast<double>(n * steps));  // a bias of 1 % of a spacing would show
}

TEST_CASE("muon_momentum in one call is muon_momentum piece by piece, wherever the pieces end") {
  TestBackend cpu;
  const int64_t n = 2 * 16384 + 1030;
  for_dtypes([&](DType momentum, DType direction) {
    const MomentumState start(n, momentum, direction), whole = start;
    cpu.ops().muon_momentum(*cpu.stream, whole.args());
    for (const std::vector<int64_t>& ends : std::vector<std::vector<int64_t>>{
             {1, 2, 3, 5, 8, n}, {64, 64, 16382, 16385, n - 3, n}, {16384, 16384 + 77, n - 1024, n}}) {
      const MomentumState pieces = start;
      int64_t begin = 0;
      for (const int64_t end : ends) {
        cpu.ops().muon_momentum(*cpu.stream, pieces.args_of(begin, end));
        begin = end;
      }
      CHECK((pieces.bytes() == whole.bytes()));
    }
  });
}

TEST_CASE("muon_momentum writes a direction that starts at another place than the gradient") {
  TestBackend cpu;
  const int64_t n = 1030;
  for (const DType dtype : {kF32, kBF16}) {
    const MomentumState start(n, dtype, kBF16), whole = start, part = start;
    cpu.ops().muon_momentum(*cpu.stream, whole.args());
    const HostTensor message = random_tensor(kBF16, {n + 5}, "rubbish");
    MuonMomentum args = part.args_of(2, n);
    args.direction = message.view().flat(5, n + 3);
    cpu.ops().muon_momentum(*cpu.stream, args);
    CHECK((bytes_of(args.direction) == bytes_of(whole.direction.view().flat(2, n))));
    const HostTensor rubbish = random_tensor(kBF16, {n + 5}, "rubbish");
    CHECK((bytes_of(message.view().flat(0, 5)) == bytes_of(rubbish.view().flat(0, 5))));
    CHECK((bytes_of(message.view().flat(n + 3, n + 5)) == bytes_of(rubbish.view().flat(n + 3, n + 5))));
  }
}

TEST_CASE("a step that is not to be applied changes no momentum and no master, and has the direction 0") {
  TestBackend cpu;
  for (const int64_t n : {1, 47, 1003}) {
    for_dtypes([&](DType momentum, DType direction) {
      MomentumState s(n, momentum, direction);
      s.grad.set(Values(static_cast<size_t>(n), kNaN));
      s.control.set({0, 0, kNaN, kNaN, 0});
      const std::string before = s.momentum.bytes();
      cpu.ops().muon_momentum(*cpu.stream, s.args());
      CHECK((s.momentum.bytes() == before));
      CHECK((s.direction.bytes() == HostTensor(direction, {n}).bytes()));
    });
    for (const DType dtype : {kF32, kBF16}) {
      UpdateState s(n, dtype);
      s.direction.set(Values(static_cast<size_t>(n), kNaN));
      s.control.set({0, 0, kNaN, kNaN, 0});
      const std::string before = s.master.bytes() + s.weights.bytes();
      cpu.ops().muon_update(*cpu.stream, s.args());
      CHECK((s.master.bytes() + s.weights.bytes() == before));
      CHECK((s.updates.bytes() == HostTensor(kF32, {n}).bytes()));
      MuonUpdate args = s.args();
      args.updates = Tensor();
      cpu.ops().muon_update(*cpu.stream, args);
      CHECK((s.master.bytes() + s.weights.bytes() == before));
    }
  }
}

TEST_CASE("normalize divides a matrix by the norm of its stored values, times a margin, and rounds once") {
  TestBackend cpu;
  for (const DType dtype : {kF32, kBF16}) {
    for (const Shape& shape : {Shape{1, 1}, {1, 31}, {47, 1}, {31, 47}, {257, 67}, {521, 67}}) {
      for (const double margin : {1.0, 1.01}) {
        INFO(shape.text() << " " << name_of(dtype));
        const HostTensor x = random_tensor(dtype, shape, "x", 3.0), norm(DType::kF64, {1}, {7});
        Values expected = x.values();
        const double exact = std::sqrt(dot(expected, expected));
        for (double& v : expected) v /= margin * exact;
        cpu.ops().normalize(*cpu.stream, {.x = x, .norm = norm, .margin = margin});
        CHECK(norm.values()[0] == Approx(exact).epsilon(1e-12));
        CHECK(max_error_before_rounding(x, expected) < 2e-7);
      }
    }
  }
}

TEST_CASE("normalize neither overflows nor divides by zero, and shows what is not finite") {
  TestBackend cpu;
  const auto normalized = [&](const Values& values, double margin = 1) {
    const HostTensor x(kF32, {1, static_cast<int64_t>(values.size())}, values), norm(DType::kF64, {1});
    cpu.ops().normalize(*cpu.stream, {.x = x, .norm = norm, .margin = margin});
    return x.values();
  };
  CHECK(normalized({0, 0, 0}) == Values{0, 0, 0});
  CHECK(normalized({0x1p100, 0})[0] == 1);                          // its square is beyond f32
  CHECK(normalized({0x1p-100, 0})[0] == Approx(0x1p-100 / 1e-7));   // less than 1e-7 counts as 1e-7
  CHECK(normalized({0.99e-7}, 1.01)[0] == Approx(0.99e-7 / 1e-7));  // so does what the margin leaves below it
  CHECK(std::isnan(normalized({1, kNaN})[0]));
}

TEST_CASE("muon_update decays the masters and takes the step against the direction") {
  TestBackend cpu;
  for (const int64_t n : kCounts) {
    for (const DType dtype : {kF32, kBF16}) {
      INFO(n << " elements, direction " << name_of(dtype));
      const UpdateState s(n, dtype);
      Values expected = s.master.values();
      const Values before = expected, direction = s.direction.values();
      for (size_t i = 0; i < expected.size(); ++i) {
        expected[i] = expected[i] * (1 - UpdateState::kDecay) - UpdateState::kRate * direction[i];
      }
      cpu.ops().muon_update(*cpu.stream, s.args());
      CHECK(max_error_before_rounding(s.master, expected) < 2e-7);
      const Values after = s.master.values();
      CHECK((s.weights.bytes() == HostTensor(kBF16, {n}, after).bytes()));
      Values updates;
      for (size_t i = 0; i < after.size(); ++i) {
        updates.push_back(static_cast<double>(static_cast<float>(after[i]) - static_cast<float>(before[i])));
      }
      CHECK((s.updates.values() == updates));
      CHECK(s.direction.values() == direction);
    }
  }
}

TEST_CASE("muon_update on a slice is muon_update on its elements, with and without weights and updates") {
  TestBackend cpu;
  const int64_t n = 1030;
  for (const DType dtype : {kF32, kBF16}) {
    const UpdateState start(n, dtype), whole = start;
    cpu.ops().muon_update(*cpu.stream, whole.args());
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, n}, {1, 2}, {3, 1027}, {4, n}, {6, 13}}) {
      for (const bool copies : {true, false}) {
        for (const bool keeps : {true, false}) {
          for (const bool skewed : {true, false}) {  // the direction is a slice too, or a tensor of its own
            const UpdateState part = start;
            MuonUpdate args = part.args();
            for (Tensor* tensor : {&args.direction, &args.master, &args.weights, &args.updates}) {
              *tensor = tensor->flat(begin, end);
            }
            const HostTensor own = HostTensor::copy_of(args.direction);
            if (skewed) args.direction = own;
            if (!copies) args.weights = Tensor();
            if (!keeps) args.updates = Tensor();
            cpu.ops().muon_update(*cpu.stream, args);
            const auto check = [&](const HostTensor& actual, const HostTensor& before, const HostTensor& after,
                                   bool changed) {
              Values expected = before.values();
              const Values all = after.values();
              if (changed) std::copy(all.begin() + begin, all.begin() + end, expected.begin() + begin);
              CHECK((actual.values() == expected));
            };
            check(part.master, start.master, whole.master, true);
            check(part.weights, start.weights, whole.weights, copies);
            check(part.updates, start.updates, whole.updates, keeps);
          }
        }
      }
    }
  }
}

TEST_CASE("Muon's operations give the same bits for any number of threads", "[threads]") {
  TestBackend cpu;
  const int64_t n = 3 * 16384 + 77;
  for_dtypes([&](DType momentum, DType direction) {
    const MomentumState start(n, momentum, direction);
    const UpdateState masters(n, direction);
    const HostTensor matrix = random_tensor(direction, {257, 131}, "matrix");
    require_thread_invariance([&] {
      const MomentumState m = start;
      const UpdateState u = masters;
      const HostTensor x = matrix, norm(DType::kF64, {1});
      cpu.ops().muon_momentum(*cpu.stream, m.args());
      cpu.ops().muon_update(*cpu.stream, u.args());
      cpu.ops().normalize(*cpu.stream, {.x = x, .norm = norm});
      return m.bytes() + u.bytes() + x.bytes() + norm.bytes();
    });
  });
}
