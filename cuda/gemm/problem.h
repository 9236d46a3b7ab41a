// A GEMM of ops.h in cuBLASLt's terms: D = alpha op(left) op(right) + beta C [+ bias to each column], all matrices
// column-major. A row-major tensor read as column-major is its transpose, so c^T = op(b)^T op(a)^T is computed, with b
// on the left. (cuBLASLt's row-major order would avoid the swap, but its tables of supported types and its tuning are
// for column-major matrices.)
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

#include "backend/ops.h"

namespace tokamak {

// Everything that the choice of an algorithm depends on: the key of the caches.
struct GemmProblem {
  static constexpr uint32_t kMaxAlignment = 256;  // no algorithm requires more

  struct Stored {
    int64_t rows, columns;  // the leading dimension is `rows`: tensors are contiguous
  };

  int64_t m, n, k;            // D is (m, n)
  bool transpose_left;        // left is stored as (k, m)
  bool transpose_right;       // right is stored as (n, k)
  bool bias;                  // whether the epilogue adds a bias
  DType in, out;              // dtype of left and right; dtype of C, D and the bias
  uint32_t left_alignment;    // of the addresses, in bytes: powers of two, kMaxAlignment at most
  uint32_t right_alignment;   //
  uint32_t added_alignment;   //
  uint32_t output_alignment;  // also of the bias, which has no separate preference
  AlgorithmChoice choice = AlgorithmChoice::kTuned;

  auto operator<=>(const GemmProblem&) const = default;

  Stored left() const { return transpose_left ? Stored{k, m} : Stored{m, k}; }
  Stored right() const { return transpose_right ? Stored{n, k} : Stored{k, n}; }
  Stored output() const { return {m, n}; }  // and of the added operand, C
};

struct GemmOperands {
  const void* left;
  const void* right;
  const void* added;  // C; the output itself, with beta 0, if nothing is added
  void* output;       // D
  const void* bias;   // (m), or null
  float alpha;
  float beta;  // 0 if nothing is added
};

inline GemmOperands gemm_operands(const Gemm& args) {
  const bool adds = args.residual || args.write == Write::kAccumulate;
  return {.left = args.b.data(),
          .right = args.a.data(),
          .added = args.residual ? args.residual.data() : args.c.data(),
          .output = args.c.data(),
          .bias = args.bias ? args.bias.data() : nullptr,
          .alpha = args.alpha,
          .beta = adds ? args.residual_scale : 0.0f};
}

// The largest power of two that divides the address, kMaxAlignment at most.
inline uint32_t gemm_alignment(const void* address) {
  const auto bits = reinterpret_cast<uintptr_t>(address) | GemmProblem::kMaxAlignment;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

inline GemmProblem gemm_problem(const Gemm& args) {
  const GemmOperands operands = gemm_operands(args);
  const bool ta = args.trans_a == Transpose::kYes, tb = args.trans_b == Transpose::kYes;
  return {.m = args.c.dim(1),
          .n = args.c.dim(0),
          .k = args.a.dim(ta ? 0 : 1),
          .transpose_left = tb,
          .transpose_right = ta,
          .bias = operands.bias != nullptr,
          .in = args.a.dtype(),
          .out = args.c.dtype(),
          .left_alignment = gemm_alignment(operands.left),
          .right_alignment = gemm_alignment(operands.right),
          .added_alignment = gemm_alignment(operands.added),
          .output_alignment = std::min(gemm_alignment(operands.output), gemm_alignment(operands.bias)),
          .choice = args.choice};
}

}  // namespace tokamak
