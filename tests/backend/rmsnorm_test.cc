// Root mean square normalisation against the formula in float64, and its gradient against finite differences.
#include "support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

struct Problem {
  int64_t rows;
  int64_t width;
  DType act;
  double eps = 1e-5;
  float offset = 0;  // of the weight
};

struct Reference {
  Values rstd;
  Values y;
};

Reference reference(const Values& x, const Values& weight, double eps) {
  const size_t width = weight.size();
  Reference out{Values(x.size() / width), Values(x.size())};
  for (size_t n = 0; n < out.rstd.size(); ++n) {
    double mean = 0;
    for (size_t c = 0; c < width; ++c) mean += x[n * width + c] * x[n * width + c] / static_cast<double>(width);
    out.rstd[n] = 1 / std::sqrt(mean + eps);
    for (size_t c = 0; c < width; ++c) out.y[n * width + c] = x[n * width + c] * out.rstd[n] * weight[c];
  }
  return out;
}

struct Inputs {
  explicit Inputs(const Problem& p)
      : x(random_tensor(p.act, {p.rows, p.width}, "x", 3.0)),
        weight(random_tensor(p.act, {p.width}, "weight")),
        dy(random_tensor(p.act, {p.rows, p.width}, "dy")),
        dresidual(random_tensor(p.act, {p.rows, p.width}, "dresidual")),
        dweight(random_tensor(DType::kF32, {p.width}, "dweight")),
        rstd(DType::kF32, {p.rows}, reference(x.values(), weight.values(), p.eps).rstd),
        offset(p.offset) {}
  // The norm multiplies by these.
  Values factors() const {
    Values sums = weight.values();
    for (double& sum : sums) sum += offset;
    return sums;
  }
  HostTensor x, weight, dy, dresidual, dweight, rstd;
  float offset;
};

// dx and the contribution to dweight, by the formula of the contract.
struct Gradients {
  Values dx;
  Values dweight;
};
Gradients gradients(const Inputs& in, bool with_dresidual) {
  const Values dy = in.dy.values(), x = in.x.values(), w = in.factors(), r = in.rstd.values();
  const size_t width = w.size();
  Gradients out{with_dresidual ? in.dresidual.values() : Values(x.size()), in.dweight.values()};
  for (size_t n = 0; n < r.size(); ++n) {
    double mean = 0;
    for (size_t i = n * width, c = 0; c < width; ++i, ++c) mean += dy[i] * w[c] * x[i] / static_cast<double>(width);
    for (size_t i = n * width, c = 0; c < width; ++i, ++c) {
      out.dx[i] += r[n] * (dy[i] * w[c] - x[i] * r[n] * r[n] * mean);
      out.dweight[c] += dy[i] * x[i] * r[n];
    }
  }
  return out;
}

// Widths are odd, or whole 16-byte vectors. Each thread of a GPU's warp or block keeps 1, 2 or 4 of these; some widths
// just exceed a smaller capacity, some exceed all. Numbers of rows are such that no number of parts divides them.
const std::vector<Problem> kProblems = {{2, 3, DType::kF32},
                                        {45, 83, DType::kF32},
                                        {45, 83, DType::kBF16},
                                        {2100, 131, DType::kF32},
                                        {17, 509, DType::kBF16},
                                        {3, 2051, DType::kBF16},
                                        {3, 64, DType::kBF16},
                                        {4101, 8, DType::kF32},
                                        {2100, 136, DType::kF32},
                                        {45, 264, DType::kBF16},
                                        {19, 260, DType::kF32},
                                        {19, 1000, DType::kBF16},
                                        {9, 516, DType::kF32},
                                        {9, 1028, DType::kF32},
                                        {9, 4000, DType::kBF16},
                                        {9, 2052, DType::kF32},
                                        {9, 7992, DType::kBF16},
                                        {9, 4100, DType::kF32},
                                        {9, 16008, DType::kBF16},
                                        {3, 8196, DType::kF32},
                                        {9, 16400, DType::kBF16},
                                        {45, 83, DType::kF32, 1e-5, 1},
                                        {45, 264, DType::kBF16, 1e-5, 1},
                                        {9, 4000, DType::kBF16, 1e-5, 1},
                                        {9, 16400, DType::kBF16, 1e-5, 1}};

Workload largest() {
  Workload w = TestBackend::small_workload();
  w.tokens = 4101;
  w.hidden = 16400;
  return w;
}

}  // namespace

TEST_CASE("rmsnorm is the formula, rounded once") {
  TestBackend cpu(largest());
  for (const Problem& p : kProblems) {
    const Inputs in(p);
    HostTensor y(p.act, {p.rows, p.width}), rstd(DType::kF32, {p.rows});
    cpu.ops().rmsnorm(*cpu.stream, {.x = in.x, .weight = in.weight, .y = y, .rstd = rstd, .offset = p.offset});
    const Reference expected = reference(in.x.values(), in.factors(), p.eps);
    CHECK(max_relative_error(rstd, expected.rstd) < 1e-6);
    CHECK(max_error_before_rounding(y, expected.y) < 1e-6);
  }
}

TEST_CASE("rmsnorm adds its result onto the residual stream, rounded once, also in place") {
  TestBackend cpu(largest());
  for (const Problem& p : kProblems) {
    const Inputs in(p);
    HostTensor y(p.act, {p.rows, p.width}), rstd(DType::kF32, {p.rows}), in_place = in.dresidual;
    cpu.ops().rmsnorm(*cpu.stream,
                      {.x = in.x, .weight = in.weight, .y = y, .rstd = rstd, .onto = in.dresidual, .offset = p.offset});
    const Reference normed = reference(in.x.values(), in.factors(), p.eps);
    Values expected = in.dresidual.values();
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += normed.y[i];
    CHECK(max_relative_error(rstd, normed.rstd) < 1e-6);
    CHECK(max_error_before_rounding(y, expected) < 1e-6);
    cpu.ops().rmsnorm(
        *cpu.stream,
        {.x = in.x, .weight = in.weight, .y = in_place, .rstd = rstd, .onto = in_place, .offset = p.offset});
    CHECK((in_place.bytes() == y.bytes()));
  }
}

TEST_CASE("a weight's offset is added in f32: in bf16 1.005 would be 1.0078") {
  TestBackend cpu(largest());
  const HostTensor x(DType::kBF16, {1, 64}, Values(64, 256.0)), weight(DType::kBF16, {64}, Values(64, 0.005));
  HostTensor y(DType::kBF16, {1, 64}), rstd(DType::kF32, {1});
  RmsNorm args{.x = x, .weight = weight, .y = y, .rstd = rstd, .offset = 1};
  args.eps = 65536.0f * 0.5f;  // rstd is not 1 / 256, so that the product is between two of bf16's values
  cpu.ops().rmsnorm(*cpu.stream, args);
  CHECK(max_error_before_rounding(y, Values(64, 256.0 * rstd.values()[0] * (1 + weight.values()[0]))) < 1e-6);
}

TEST_CASE("rmsnorm accepts tensors at any alignment") {
  TestBackend cpu(largest());
  const int64_t rows = 5, width = 64;
  const Inputs in({rows, width, DType::kBF16});
  const Reference expected = reference(in.x.values(), in.weight.values(), 1e-5);
  const Gradients gradient = gradients(in, true);
  enum { kX, kWeight, kY, kDy, kDresidual, kDx, kTensors };
  for (int moved = 0; moved < kTensors; ++moved) {
    std::vector<HostTensor> memory;
    const auto place = [&](int which, const HostTensor& tensor) {
      const int64_t at = which == moved ? 1 : 0;
      const Tensor view = memory.emplace_back(DType::kBF16, tokamak::Shape{tensor.count() + at}).view();
      const Tensor placed = view.flat(at, at + tensor.count()).reshape(tensor.shape());
      write_bytes(placed, tensor.bytes());
      return placed;
    };
    const Tensor x = place(kX, in.x), weight = place(kWeight, in.weight), y = place(kY, in.x), dy = place(kDy, in.dy),
                 dresidual = place(kDresidual, in.dresidual), dx = place(kDx, in.x);
    HostTensor rstd(DType::kF32, {rows}), dweight = in.dweight;
    cpu.ops().rmsnorm(*cpu.stream, {x, weight, y, rstd});
    cpu.ops().rmsnorm_backward(*cpu.stream, {dy, x, weight, in.rstd, dresidual, dx, dweight});
    INFO("tensor " << moved);
    CHECK(max_error_before_rounding(HostTensor::copy_of(y), expected.y) < 1e-6);
    CHECK(max_error_before_rounding(HostTensor::copy_of(dx), gradient.dx) < 1e-6);
    CHECK(max_relative_error(dweight, gradient.dweight) < 1e-6);
  }
}

TEST_CASE("rmsnorm accepts no tokens") {
  TestBackend cpu;
  const HostTensor none(DType::kBF16, {0, 64}), weight(DType::kBF16, {64}), rstd(DType::kF32, {0});
  const HostTensor y = none, dx = none, before = random_tensor(DType::kF32, {64}, "dweight"), dweight = before;
  cpu.ops().rmsnorm(*cpu.stream, {none, weight, y, rstd});
  cpu.ops().rmsnorm_backward(*cpu.stream, {none, none, weight, rstd, {}, dx, dweight});
  CHECK((dweight.bytes() == before.bytes()));
}

TEST_CASE("eps keeps a row of zeros finite") {
  TestBackend cpu(largest());
  const HostTensor x(DType::kF32, {1, 5}), weight(DType::kF32, {5}, Values(5, 2.0));
  HostTensor y(DType::kF32, {1, 5}), rstd(DType::kF32, {1});
  RmsNorm args{x, weight, y, rstd};
  args.eps = 0.25f;
  cpu.ops().rmsnorm(*cpu.stream, args);
  CHECK(rstd.values() == Values{2.0});
  CHECK(max_abs(y.values()) == 0);
}

TEST_CASE("rmsnorm_backward is the formula, rounded once, and accumulates the weight's gradient") {
  TestBackend cpu(largest());
  for (const Problem& p : kProblems) {
    const Inputs in(p);
    for (const bool with_dresidual : {false, true}) {
      HostTensor dx(p.act, {p.rows, p.width}), dweight = in.dweight;
      const Tensor dresidual = with_dresidual ? Tensor(in.dresidual) : Tensor();
      cpu.ops().rmsnorm_backward(*cpu.stream, {in.dy, in.x, in.weight, in.rstd, dresidual, dx, dweight, {}, p.offset});
      const Gradients expected = gradients(in, with_dresidual);
      CHECK(max_error_before_rounding(dx, expected.dx) < 1e-6);
      CHECK(max_relative_error(dweight, expected.dweight) < 1e-6);
    }
  }
}

TEST_CASE("rmsnorm_backward may write over its inputs") {
  TestBackend cpu(largest());
  for (const Problem& p : kProblems) {
    const Inputs in(p);
    HostTensor dx(p.act, {p.rows, p.width}), dweight = in.dweight;
    cpu.ops().rmsnorm_backward(*cpu.stream, {in.dy, in.x, in.weight, in.rstd, in.dresidual, dx, dweight});
    for (const bool onto_dy : {true, false}) {
      HostTensor dy = in.dy, dresidual = in.dresidual, dweight2 = in.dweight;
      const HostTensor& onto = onto_dy ? dy : dresidual;
      cpu.ops().rmsnorm_backward(*cpu.stream, {dy, in.x, in.weight, in.rstd, dresidual, onto, dweight2});
      CHECK((onto.bytes() == dx.bytes() && dweight2.bytes() == dweight.bytes()));
    }
  }
}

TEST_CASE("rmsnorm_backward recomputes rmsnorm's output with the same bits, also in place of its incoming gradient") {
  TestBackend cpu(largest());
  for (const Problem& p : kProblems) {
    const Inputs in(p);
    HostTensor y(p.act, {p.rows, p.width}), rstd(DType::kF32, {p.rows}), dx(p.act, {p.rows, p.width});
    HostTensor dweight = in.dweight;
    cpu.ops().rmsnorm(*cpu.stream, {.x = in.x, .weight = in.weight, .y = y, .rstd = rstd, .offset = p.offset});
    cpu.ops().rmsnorm_backward(*cpu.stream, {in.dy, in.x, in.weight, rstd, in.dresidual, dx, dweight, {}, p.offset});
    for (const bool over_dy : {false, true}) {
      HostTensor dy = in.dy, own(p.act, {p.rows, p.width}), dx2(p.act, {p.rows, p.width}), dweight2 = in.dweight;
      const HostTensor& again = over_dy ? dy : own;
      cpu.ops().rmsnorm_backward(*cpu.stream,
                                 {dy, in.x, in.weight, rstd, in.dresidual, dx2, dweight2, again, p.offset});
      CHECK((again.bytes() == y.bytes() && dx2.bytes() == dx.bytes() && dweight2.bytes() == dweight.bytes()));
    }
  }
}

TEST_CASE("rmsnorm_backward is the gradient of rmsnorm") {
  TestBackend cpu(largest());
  const Problem p{3, 11, DType::kF32, 0.5};  // eps is large enough to change the result
  const Inputs in(p);
  HostTensor dx(p.act, {p.rows, p.width}), dweight(DType::kF32, {p.width});
  cpu.ops().rmsnorm_backward(*cpu.stream, {in.dy, in.x, in.weight, in.rstd, in.dresidual, dx, dweight});
  const auto of_x = [&](const Values& x) {
    return dot(reference(x, in.weight.values(), p.eps).y, in.dy.values()) + dot(x, in.dresidual.values());
  };
  const auto of_weight = [&](const Values& w) { return dot(reference(in.x.values(), w, p.eps).y, in.dy.values()); };
  CHECK(max_relative_error(dx, finite_difference(of_x, in.x.values())) < 1e-6);
  CHECK(max_relative_error(dweight, finite_difference(of_weight, in.weight.values())) < 1e-6);
}

TEST_CASE("rmsnorm gives the same bits for any number of threads", "[threads]") {
  TestBackend cpu(largest());
  for (const DType act : {DType::kF32, DType::kBF16}) {
    const Problem p{2100, 131, act};
    const Inputs in(p);
    require_thread_invariance([&] {
      HostTensor y(act, {p.rows, p.width}), rstd(DType::kF32, {p.rows});
      HostTensor dx(act, {p.rows, p.width}), dweight = in.dweight;
      cpu.ops().rmsnorm(*cpu.stream, {in.x, in.weight, y, rstd});
      cpu.ops().rmsnorm_backward(*cpu.stream, {in.dy, in.x, in.weight, in.rstd, in.dresidual, dx, dweight});
      return y.bytes() + rstd.bytes() + dx.bytes() + dweight.bytes();
    });
  }
}
