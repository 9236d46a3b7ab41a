// SwiGLU and GeGLU against the formula in float64, and its gradient against finite differences.
#include "support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

double sigmoid64(double x) { return 1 / (1 + std::exp(-x)); }

struct Activation {
  double value, slope;
};
Activation activation64(Gate gate, double x) {
  if (gate == Gate::kSilu) {
    const double s = sigmoid64(x);
    return {x * s, s * (1 + x * (1 - s))};
  }
  const double k = std::sqrt(2 / std::acos(-1.0)), b = 0.044715, t = std::tanh(k * (x + b * x * x * x));
  return {x / 2 * (1 + t), (1 + t) / 2 + x / 2 * (1 - t * t) * k * (1 + 3 * b * x * x)};
}

Values forward64(const Values& gate_up, size_t width, Gate gate) {
  Values out;
  for (size_t at = 0; at < gate_up.size(); at += 2 * width) {
    for (size_t i = at; i < at + width; ++i) out.push_back(activation64(gate, gate_up[i]).value * gate_up[i + width]);
  }
  return out;
}

Values backward64(const Values& gate_up, const Values& dout, size_t width, Gate gate) {
  Values d(gate_up.size());
  for (size_t n = 0; n * width < dout.size(); ++n) {
    for (size_t c = 0; c < width; ++c) {
      const size_t i = n * 2 * width + c;
      const Activation g = activation64(gate, gate_up[i]);
      d[i] = dout[n * width + c] * gate_up[i + width] * g.slope;
      d[i + width] = dout[n * width + c] * g.value;
    }
  }
  return d;
}

struct Problem {
  int64_t rows;
  int64_t width;
  DType act;
  Gate gate = Gate::kSilu;
};
const std::vector<Problem> kProblems = {{1, 1, DType::kF32},
                                        {29, 83, DType::kF32},
                                        {29, 83, DType::kBF16},
                                        {5, 517, DType::kF32},
                                        {5, 517, DType::kBF16},
                                        {301, 64, DType::kBF16},
                                        {29, 83, DType::kF32, Gate::kGelu},
                                        {301, 64, DType::kBF16, Gate::kGelu},
                                        {5, 517, DType::kBF16, Gate::kGelu}};

HostTensor gate_up_of(const Problem& p) { return random_tensor(p.act, {p.rows, 2 * p.width}, "gate_up", 4.0); }
HostTensor dout_of(const Problem& p) { return random_tensor(p.act, {p.rows, p.width}, "dout"); }

}  // namespace

TEST_CASE("swiglu is the formula, rounded once") {
  TestBackend cpu;
  for (const Problem& p : kProblems) {
    const HostTensor gate_up = gate_up_of(p);
    HostTensor out(p.act, {p.rows, p.width});
    cpu.ops().swiglu(*cpu.stream, {gate_up, out, p.gate});
    CHECK(max_error_before_rounding(out, forward64(gate_up.values(), static_cast<size_t>(p.width), p.gate)) < 1e-6);
  }
}

TEST_CASE("swiglu_backward is the formula, rounded once, also in place") {
  TestBackend cpu;
  for (const Problem& p : kProblems) {
    const HostTensor gate_up = gate_up_of(p), dout = dout_of(p);
    HostTensor dgate_up(p.act, gate_up.shape()), in_place = gate_up;
    cpu.ops().swiglu_backward(*cpu.stream, {gate_up, dout, dgate_up, {}, p.gate});
    const Values expected = backward64(gate_up.values(), dout.values(), static_cast<size_t>(p.width), p.gate);
    CHECK(max_error_before_rounding(dgate_up, expected) < 1e-6);
    cpu.ops().swiglu_backward(*cpu.stream, {in_place, dout, in_place, {}, p.gate});
    CHECK((in_place.bytes() == dgate_up.bytes()));
  }
}

TEST_CASE("swiglu_backward recomputes swiglu's output with the same bits, also in place of its inputs") {
  TestBackend cpu;
  for (const Problem& p : kProblems) {
    const HostTensor gate_up = gate_up_of(p), dout = dout_of(p);
    HostTensor out(p.act, dout.shape()), dgate_up(p.act, gate_up.shape()), again = out;
    cpu.ops().swiglu(*cpu.stream, {gate_up, out, p.gate});
    cpu.ops().swiglu_backward(*cpu.stream, {gate_up, dout, dgate_up, {}, p.gate});
    const std::string gradient = dgate_up.bytes();
    cpu.ops().swiglu_backward(*cpu.stream, {gate_up, dout, dgate_up, again, p.gate});
    CHECK((again.bytes() == out.bytes() && dgate_up.bytes() == gradient));
    HostTensor in_place = gate_up, over_dout = dout;
    cpu.ops().swiglu_backward(*cpu.stream, {in_place, over_dout, in_place, over_dout, p.gate});
    CHECK((over_dout.bytes() == out.bytes() && in_place.bytes() == gradient));
  }
}

TEST_CASE("swiglu_backward is the gradient of swiglu") {
  TestBackend cpu;
  for (const Gate gate : {Gate::kSilu, Gate::kGelu}) {
    const Problem p{3, 7, DType::kF32, gate};
    const HostTensor gate_up = gate_up_of(p), dout = dout_of(p);
    HostTensor dgate_up(p.act, gate_up.shape());
    cpu.ops().swiglu_backward(*cpu.stream, {gate_up, dout, dgate_up, {}, gate});
    const auto loss = [&](const Values& v) { return dot(forward64(v, 7, gate), dout.values()); };
    CHECK(max_relative_error(dgate_up, finite_difference(loss, gate_up.values())) < 1e-6);
  }
}

TEST_CASE("swiglu saturates without overflow") {
  TestBackend cpu;
  const HostTensor gate_up(DType::kF32, {1, 6}, {-1e30, -200, 200, 3, 3, 3});
  const HostTensor dout(DType::kF32, {1, 3}, {1, 1, 1});
  HostTensor out(DType::kF32, {1, 3}), dgate_up(DType::kF32, {1, 6});
  cpu.ops().swiglu(*cpu.stream, {gate_up, out});
  cpu.ops().swiglu_backward(*cpu.stream, {gate_up, dout, dgate_up});
  CHECK(out.values() == Values{0, 0, 600});
  CHECK(dgate_up.values() == Values{0, 0, 3, 0, 0, 200});
}

TEST_CASE("swiglu gives the same bits for any number of threads", "[threads]") {
  TestBackend cpu;
  for (const DType act : {DType::kF32, DType::kBF16}) {
    const Problem p{307, 411, act};
    const HostTensor gate_up = gate_up_of(p), dout = dout_of(p);
    require_thread_invariance([&] {
      HostTensor out(act, {p.rows, p.width}), dgate_up(act, gate_up.shape());
      cpu.ops().swiglu(*cpu.stream, {gate_up, out});
      cpu.ops().swiglu_backward(*cpu.stream, {gate_up, dout, dgate_up});
      return out.bytes() + dgate_up.bytes();
    });
  }
}
