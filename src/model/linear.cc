#include "model/linear.h"

namespace tokamak {

void Linear::forward(const PartPass& pass, Tensor x, Tensor y, const Added& added) const {
  pass.in.ops.gemm(pass.in.compute, {.a = x,
                                     .b = pass.w(id_),
                                     .c = y,
                                     .residual = added.residual,
                                     .bias = added.bias,
                                     .trans_b = Transpose::kYes,
                                     .label = labels_.forward});
}

void Linear::dx(const PartPass& pass, Tensor dy, Tensor dx) const {
  pass.in.ops.gemm(pass.in.compute, {.a = dy, .b = pass.w(id_), .c = dx, .label = labels_.dx});
}

void Linear::dw(const PartPass& pass, Tensor dy, Tensor x) const {
  pass.in.ops.gemm(
      pass.in.compute,
      {.a = dy, .b = x, .c = pass.dw(id_), .trans_a = Transpose::kYes, .write = pass.write(), .label = labels_.dw});
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

void NormedLinear::forward(const PartPass& pass, Tensor y, Tensor bias) const {
  const Tensor output = pass.a(norm.output);
  pass.in.ops.rmsnorm(pass.in.compute, {.x = pass.x,
                                        .weight = pass.w(norm.weight),
                                        .y = output,
                                        .rstd = pass.a(norm.rstd),
                                        .eps = static_cast<float>(norm.eps)});
  linear.forward(pass, output, y, {.bias = bias});
}

void NormedLinear::backward(const PartPass& pass, Tensor dy) const {
  const Tensor output = pass.a(norm.output);
  linear.backward_in_place(pass, dy, output, norm.kept, [&](Tensor recomputed) {
    pass.in.ops.rmsnorm_backward(pass.in.compute, {.dy = output,
                                                   .x = pass.x,
                                                   .weight = pass.w(norm.weight),
                                                   .rstd = pass.a(norm.rstd),
                                                   .dresidual = pass.in.dx,
                                                   .dx = pass.in.dx,
                                                   .dweight = pass.dw(norm.weight),
                                                   .y = recomputed});
  });
}

}  // namespace tokamak
