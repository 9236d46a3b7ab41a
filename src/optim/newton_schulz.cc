#include "optim/newton_schulz.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace tokamak {

namespace {

// KellerJordan/Muon, muon.py.
constexpr Quintic kJordan = {3.4445, -4.7750, 2.0315};

// Polar Express (arXiv 2505.16932), one row a step: karpathy/nanochat, nanochat/optim.py. X is divided by 1.01 norm.
const std::vector<Quintic> kPolarExpress = {{8.156554524902461, -22.48329292557795, 15.878769915207462},
                                            {4.042929935166739, -2.808917465908714, 0.5000178451051316},
                                            {3.8916678022926607, -2.772484153217685, 0.5060648178503393},
                                            {3.285753657755655, -2.3681294933425376, 0.46449024233003106},
                                            {2.3465413258596377, -1.7097828382687081, 0.42323551169305323}};
constexpr double kPolarExpressMargin = 1.01;

}  // namespace

Shape gram_shape(const Shape& matrix) {
  const int64_t shorter = std::min(matrix[0], matrix[1]);
  return {shorter, shorter};
}

std::vector<Quintic> quintics_of(NewtonSchulzCoefficients coefficients, int64_t steps) {
  if (coefficients == NewtonSchulzCoefficients::kJordan)
    return std::vector<Quintic>(static_cast<size_t>(steps), kJordan);
  if (steps != std::ssize(kPolarExpress)) {
    fail(Kind::kConfig, str("polar_express has coefficients for ", kPolarExpress.size(), " steps, not for ", steps));
  }
  return kPolarExpress;
}

Tensor orthogonalise(Ops& ops, Stream& stream, const NewtonSchulz& args) {
  const bool tall = args.x.dim(0) > args.x.dim(1);
  Tensor x = args.x, next = args.other;
  const auto multiply = [&](Gemm gemm) {
    gemm.choice = AlgorithmChoice::kFixed;  // equal on all ranks
    ops.gemm(stream, gemm);
  };
  const bool jordan = args.coefficients == NewtonSchulzCoefficients::kJordan;
  ops.normalize(stream, {.x = x, .norm = args.norm, .margin = jordan ? 1.0 : kPolarExpressMargin});
  for (const Quintic& q : quintics_of(args.coefficients, args.steps)) {
    multiply({.a = x,
              .b = x,
              .c = args.gram,
              .trans_a = tall ? Transpose::kYes : Transpose::kNo,
              .trans_b = tall ? Transpose::kNo : Transpose::kYes,
              .label = "newton-schulz gram"});
    multiply({.a = args.gram,
              .b = args.gram,
              .c = args.polynomial,
              .residual = args.gram,
              .label = "newton-schulz polynomial",
              .alpha = static_cast<float>(q.c),
              .residual_scale = static_cast<float>(q.b)});
    multiply({.a = tall ? x : args.polynomial,
              .b = tall ? args.polynomial : x,
              .c = next,
              .residual = x,
              .label = "newton-schulz step",
              .residual_scale = static_cast<float>(q.a)});
    std::swap(x, next);
  }
  return x;
}

}  // namespace tokamak
