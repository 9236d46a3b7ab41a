#include "model/linear.h"

namespace tokamak {

void Linear::forward(const PartPass& pass, Tensor x, Tensor y, Tensor residual) const {
  pass.in.ops.gemm(pass.in.compute, {.a = x,
                                     .b = pass.w(ids_.matrix),
                                     .c = y,
                                     .residual = residual,
                                     .bias = ids_.bias ? pass.w(*ids_.bias) : Tensor(),
                                     .trans_b = Transpose::kYes,
                                     .label = labels_.forward});
}

void Linear::dx(const PartPass& pass, Tensor dy, Tensor dx, Tensor residual) const {
  pass.in.ops.gemm(pass.in.compute,
                   {.a = dy, .b = pass.w(ids_.matrix), .c = dx, .residual = residual, .label = labels_.dx});
}

void Linear::dw(const PartPass& pass, Tensor dy, Tensor x) const {
  pass.in.ops.gemm(pass.in.compute, {.a = dy,
                                     .b = x,
                                     .c = pass.dw(ids_.matrix),
                                     .trans_a = Transpose::kYes,
                                     .write = pass.write(),
                                     .label = labels_.dw});
  if (ids_.bias) pass.in.ops.column_sums(pass.in.compute, {.x = dy, .sums = pass.dw(*ids_.bias)});
}

Matrix Linear::weights(const std::string& prefix, double std) const {
  Matrix matrix{name_, {}};
  for (const Rows& rows : outputs_) {
    matrix.parts.push_back({prefix + rows.name + ".weight", Shape{rows.count, columns_}, 0.0, std, Decay::kYes});
  }
  return matrix;
}

Matrix Linear::biases(const std::string& prefix) const {
  Matrix matrix{prefix + name_ + "_bias", {}};
  for (const Rows& rows : outputs_) {
    matrix.parts.push_back({prefix + rows.name + ".bias", Shape{rows.count}, 0.0, 0.0, Decay::kNo});
  }
  return matrix;
}

double Linear::flops() const {
  int64_t rows = 0;
  for (const Rows& output : outputs_) rows += output.count;
  return 2.0 * double(rows * columns_);
}

void BranchBegin::forward(const PartPass& pass, Tensor y) const {
  if (!norm) return linear.forward(pass, pass.x, y);
  const Tensor output = pass.a(norm->output);
  pass.in.ops.rmsnorm(pass.in.compute, {.x = pass.x,
                                        .weight = pass.w(norm->weight),
                                        .y = output,
                                        .rstd = pass.a(norm->rstd),
                                        .eps = norm->eps,
                                        .offset = norm->offset});
  linear.forward(pass, output, y);
}

void BranchBegin::backward(const PartPass& pass, Tensor dy) const {
  if (!norm) {
    linear.dw(pass, dy, pass.x);
    const Tensor sum = pass.a(dbranch);  // a GEMM does not add to its own output
    linear.dx(pass, dy, sum, pass.in.dx);
    pass.in.ops.cast(pass.in.compute, {.src = sum.flat(0, sum.count()), .dst = pass.in.dx.flat(0, sum.count())});
    return;
  }
  const Tensor output = pass.a(norm->output);
  linear.backward_in_place(pass, dy, output, norm->kept, [&](Tensor recomputed) {
    pass.in.ops.rmsnorm_backward(pass.in.compute, {.dy = output,
                                                   .x = pass.x,
                                                   .weight = pass.w(norm->weight),
                                                   .rstd = pass.a(norm->rstd),
                                                   .dresidual = pass.in.dx,
                                                   .dx = pass.in.dx,
                                                   .dweight = pass.dw(norm->weight),
                                                   .y = recomputed,
                                                   .offset = norm->offset});
  });
}

void BranchEnd::forward(const PartPass& pass, Tensor a) const {
  if (!norm) return linear.forward(pass, a, pass.out, pass.x);
  const Tensor branch = pass.a(norm->branch);
  if (pass.computes(norm->kept)) linear.forward(pass, a, branch);
  pass.in.ops.rmsnorm(pass.in.compute, {.x = branch,
                                        .weight = pass.w(norm->weight),
                                        .y = pass.out,
                                        .rstd = pass.a(norm->rstd),
                                        .eps = norm->eps,
                                        .onto = pass.x,
                                        .offset = norm->offset});
}

Tensor BranchEnd::gradient(const PartPass& pass) const {
  if (!norm) return pass.in.dx;
  pass.in.ops.rmsnorm_backward(pass.in.compute, {.dy = pass.in.dx,
                                                 .x = pass.a(norm->branch),
                                                 .weight = pass.w(norm->weight),
                                                 .rstd = pass.a(norm->rstd),
                                                 .dx = pass.a(dbranch),
                                                 .dweight = pass.dw(norm->weight),
                                                 .offset = norm->offset});
  return pass.a(dbranch);
}

}  // namespace tokamak
