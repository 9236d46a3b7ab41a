// SwiGLU against the formula in float64, and its gradient against finite differences.
#include "support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

double sigmoid64(double x) { return 1 / (1 + std::exp(-x)); }

Values forward64(const Values& gate_up, size_t width) {
  Values out;
  for (size_t at = 0; at < gate_up.size(); at += 2 * width) {
    for (size_t i = at; i < at + width; ++i) out.push_back(gate_up[i] * sigmoid64(gate_up[i]) * gate_up[i + width]);
  }
  return out;
}

Values backward64(const Values& gate_up, const Values& dout, size_t width) {
  Values d(gate_up.size());
  for (size_t n = 0; n * width < dout.size(); ++n) {
    for (size_t c = 0; c < width; ++c) {
      const size_t i = n * 2 * width + c;
      const double g = gate_up[i], u = gate_up[i + width], s = sigmoid64(g), d_out = dout[n * width + c];
      d[i] = d_out * u * s * (1 + g * (1 - s));
      d[i + width] = d_out * g * s;
    }
  }
  return d;
}

struct Problem {
  int64_t rows;
  int64_t width;
  DType act;
};
const std::vector<Problem> kProblems = {{1, 1, DType::kF32},   {29, 83, DType::kF32},  {29, 83, DType::kBF16},
                                        {5, 517, DType::kF32}, {5, 517, DType::kBF16}, {301, 64, DType::kBF16}};

HostTensor gate_up_of(const Problem& p) { return random_tensor(p.act, {p.rows, 2 * p.width}, "gate_up", 4.0); }
HostTensor dout_of(const Problem& p) { return random_tensor(p.act, {p.rows, p.width}, "dout"); }

}  // namespace

TEST_CASE("swiglu is the formula, rounded once") {
  TestBackend cpu;
  for (const Problem& p : kProblems) {
    const HostTensor gate_up = gate_up_of(p);
    HostTensor out(p.act, {p.rows, p.width});
    cpu.ops().swiglu(*cpu.stream, {gate_up, out});
    CHECK(max_error_before_rounding(out, forward64(gate_up.values(), static_cast<size_t>(p.width))) < 1e-6);
  }
}

TEST_CASE("swiglu_backward is the formula, rounded once, also in place") {
  TestBackend cpu;
  for (const Problem& p : kProblems) {
    const HostTensor gate_up = gate_up_of(p), dout = dout_of(p);
    HostTensor dgate_up(p.act, gate_up.shape()), in_place = gate_up;
    cpu.ops().swiglu_backward(*cpu.stream, {gate_up, dout, dgate_up});
    const Values expected = backward64(gate_up.values(), dout.values(), static_cast<size_t>(p.width));
    CHECK(max_error_before_rounding(dgate_up, expected) < 1e-6);
    cpu.ops().swiglu_backward(*cpu.stream, {in_place, dout, in_place});
    CHECK((in_place.bytes() == dgate_up.bytes()));
  }
}

TEST_CASE("swiglu_backward recomputes swiglu's output with the same bits, also in place of its inputs") {
  TestBackend cpu;
  for (const Problem& p : kProblems) {
    const HostTensor gate_up = gate_up_of(p), dout = dout_of(p);
    HostTensor out(p.act, dout.shape()), dgate_up(p.act, gate_up.shape()), again = out;
    cpu.ops().swiglu(*cpu.stream, {gate_up, out});
    cpu.ops().swiglu_backward(*cpu.stream, {gate_up, dout, dgate_up});
    const std::string gradient = dgate_up.bytes();
    cpu.ops().swiglu_backward(*cpu.stream, {gate_up, dout, dgate_up, again});
    CHECK((again.bytes() == out.bytes() && dgate_up.bytes() == gradient));
    HostTensor in_place = gate_up, over_dout = dout;
    cpu.ops().swiglu_backward(*cpu.stream, {in_place, over_dout, in_place, over_dout});
    CHECK((over_dout.bytes() == out.bytes() && in_place.bytes() == gradient));
  }
}

TEST_CASE("swiglu_backward is the gradient of swiglu") {
  TestBackend cpu;
  const Problem p{3, 7, DType::kF32};
  const HostTensor gate_up = gate_up_of(p), dout = dout_of(p);
  HostTensor dgate_up(p.act, gate_up.shape());
  cpu.ops().swiglu_backward(*cpu.stream, {gate_up, dout, dgate_up});
  const auto loss = [&](const Values& v) { return dot(forward64(v, 7), dout.values()); };
  CHECK(max_relative_error(dgate_up, finite_difference(loss, gate_up.values())) < 1e-6);
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
