// Newton-Schulz: orthogonalises a matrix approximately, by GEMMs alone. Each iteration maps every singular value s of X
// to a s + b s^3 + c s^5 and keeps the singular vectors. All values end near 1, but for the smallest.
// X and every product are rounded to X's dtype once; sums are f32. A zero matrix stays zero.
#pragma once

#include <vector>

#include "backend/ops.h"
#include "optim/options.h"

namespace tokamak {

struct NewtonSchulz {
  Tensor x;           // (A, B) f32 or bf16: the matrix; overwritten
  Tensor other;       // as x
  Tensor gram;        // gram_shape(x.shape()), dtype of x
  Tensor polynomial;  // as gram
  Tensor norm;        // (1) f64: written
  NewtonSchulzCoefficients coefficients = NewtonSchulzCoefficients::kJordan;
  int64_t steps = 5;
};

// (s, s), s = min(A, B)
Shape gram_shape(const Shape& matrix);

// Enqueues 3 GEMMs a step: k (4 s^2 l + 2 s^3) FLOPs for k steps and l = max(A, B). Returns the tensor with the result:
// x or other.
Tensor orthogonalise(Ops& ops, Stream& stream, const NewtonSchulz& args);

// The coefficients of one step.
struct Quintic {
  double a, b, c;
};

// Those of all steps. Error(kConfig) where a table that has one row for each step has another number of rows.
std::vector<Quintic> quintics_of(NewtonSchulzCoefficients coefficients, int64_t steps);

}  // namespace tokamak
