// The column-major problem for cuBLASLt equals the row-major contract of ops.h: evaluated per element, without a GPU.
// Contents are small integers, so that every sum is exact.
#include "cuda/gemm/problem.h"

#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"

using namespace tokamak;

namespace {

constexpr Transpose kNo = Transpose::kNo, kYes = Transpose::kYes;

enum class AddedOperand { kNothing, kOutput, kResidual, kScaledResidual, kBias, kResidualAndBias };
constexpr float kAlpha = 3, kResidualScale = -2;

// A matrix with memory of its own.
struct Matrix {
  std::vector<float> values;
  Shape shape;

  Matrix(int64_t rows, int64_t columns, const std::string& name) : shape{rows, columns} {
    const RandomStream stream(1234, name);
    for (int64_t i = 0; i < rows * columns; ++i) {
      values.push_back(static_cast<float>(stream.word(static_cast<uint64_t>(i)) % 19) - 9);
    }
  }
  operator Tensor() { return {values.data(), DType::kF32, shape}; }
  float at(int64_t row, int64_t column) const { return values[static_cast<size_t>(row * shape[1] + column)]; }
};

struct Case {
  int64_t m, n, k;
  Transpose ta, tb;
  AddedOperand added;
  Matrix a = ta == kYes ? Matrix(k, m, "a") : Matrix(m, k, "a");
  Matrix b = tb == kYes ? Matrix(n, k, "b") : Matrix(k, n, "b");
  Matrix c{m, n, "c"};
  Matrix residual{m, n, "residual"};
  Matrix bias{1, n, "bias"};

  Gemm gemm() {
    Gemm args{.a = a, .b = b, .c = c, .trans_a = ta, .trans_b = tb};
    if (added == AddedOperand::kOutput) args.write = Write::kAccumulate;
    if (added == AddedOperand::kResidual || added == AddedOperand::kScaledResidual ||
        added == AddedOperand::kResidualAndBias) {
      args.residual = residual;
    }
    if (added == AddedOperand::kScaledResidual) {
      args.alpha = kAlpha;
      args.residual_scale = kResidualScale;
    }
    if (added == AddedOperand::kBias || added == AddedOperand::kResidualAndBias) args.bias = Tensor(bias).reshape({n});
    return args;
  }
};

// The contract's formula, by rows.
std::vector<float> expected(const Case& x) {
  std::vector<float> out;
  for (int64_t i = 0; i < x.m; ++i) {
    for (int64_t j = 0; j < x.n; ++j) {
      float sum = x.added == AddedOperand::kNothing           ? 0
                  : x.added == AddedOperand::kBias            ? x.bias.at(0, j)
                  : x.added == AddedOperand::kResidualAndBias ? x.residual.at(i, j) + x.bias.at(0, j)
                  : x.added == AddedOperand::kResidual        ? x.residual.at(i, j)
                  : x.added == AddedOperand::kScaledResidual  ? kResidualScale * x.residual.at(i, j)
                                                              : x.c.at(i, j);
      for (int64_t l = 0; l < x.k; ++l) {
        sum += (x.added == AddedOperand::kScaledResidual ? kAlpha : 1) * (x.ta == kYes ? x.a.at(l, i) : x.a.at(i, l)) *
               (x.tb == kYes ? x.b.at(j, l) : x.b.at(l, j));
      }
      out.push_back(sum);
    }
  }
  return out;
}

// BLAS's definition: element (row, column) of op(x), x stored by columns.
float element(const void* x, const GemmProblem::Stored& stored, bool transpose, int64_t row, int64_t column) {
  if (transpose) std::swap(row, column);
  REQUIRE((0 <= row && row < stored.rows && 0 <= column && column < stored.columns));
  return static_cast<const float*>(x)[row + column * stored.rows];
}

void evaluate(const GemmProblem& p, const GemmOperands& o) {
  for (int64_t j = 0; j < p.n; ++j) {
    for (int64_t i = 0; i < p.m; ++i) {
      float sum = 0;
      for (int64_t l = 0; l < p.k; ++l) {
        sum += o.alpha * element(o.left, p.left(), p.transpose_left, i, l) *
               element(o.right, p.right(), p.transpose_right, l, j);
      }
      if (p.bias) sum += static_cast<const float*>(o.bias)[i];
      if (o.beta != 0) sum += o.beta * element(o.added, p.output(), false, i, j);
      static_cast<float*>(o.output)[i + j * p.output().rows] = sum;
    }
  }
}

}  // namespace

TEST_CASE("the column-major problem equals the row-major GEMM, for every transposition and added operand") {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{5, 7, 3}, {1, 6, 4}, {6, 1, 4}, {3, 4, 1}, {1, 1, 1}}) {
    for (const Transpose ta : {kNo, kYes}) {
      for (const Transpose tb : {kNo, kYes}) {
        for (const AddedOperand added :
             {AddedOperand::kNothing, AddedOperand::kOutput, AddedOperand::kResidual, AddedOperand::kScaledResidual,
              AddedOperand::kBias, AddedOperand::kResidualAndBias}) {
          INFO("(" << m << ", " << n << ", " << k << ") transposed " << (ta == kYes) << (tb == kYes) << ", added "
                   << static_cast<int>(added));
          Case x{m, n, k, ta, tb, added};
          const std::vector<float> right = expected(x);
          evaluate(gemm_problem(x.gemm()), gemm_operands(x.gemm()));
          CHECK(x.c.values == right);
        }
      }
    }
  }
}

TEST_CASE("a problem's alignment is that of each operand's address, 256 bytes at most") {
  const auto at = [](uintptr_t address) { return gemm_alignment(reinterpret_cast<const void*>(address)); };
  CHECK(at(0x10000) == 256);
  CHECK(at(0x10100) == 256);
  CHECK(at(0x10080) == 128);
  CHECK(at(0x10010) == 16);
  CHECK(at(0x10018) == 8);
  CHECK(at(0x10002) == 2);
  CHECK(at(0x10001) == 1);

  const auto tensor = [](uintptr_t address) { return Tensor(reinterpret_cast<void*>(address), DType::kBF16, {8, 8}); };
  Gemm args{.a = tensor(0x10010), .b = tensor(0x20020), .c = tensor(0x30040)};
  const GemmProblem alone = gemm_problem(args);
  CHECK(alone.left_alignment == 32);  // b
  CHECK(alone.right_alignment == 16);
  CHECK(alone.added_alignment == 64);  // nothing is added: it is the output's alignment
  CHECK(alone.output_alignment == 64);
  args.residual = tensor(0x40008);
  CHECK(gemm_problem(args).added_alignment == 8);
  CHECK(gemm_problem(args).output_alignment == 64);
  args.residual = {};
  args.bias = tensor(0x50004).flat(0, 8);
  CHECK(gemm_problem(args).output_alignment == 4);
  CHECK(gemm_problem(args) != alone);
  args.bias = tensor(0x50000).flat(0, 8);
  CHECK(gemm_problem(args) != alone);  // another epilogue
}

TEST_CASE("problems are the same where an algorithm for one serves the other") {
  const auto tensor = [](uintptr_t address, DType dtype, Shape shape) {
    return Tensor(reinterpret_cast<void*>(address), dtype, shape);
  };
  const auto problem = [&](DType in, DType out, int64_t m, int64_t n, int64_t k, Transpose ta, Transpose tb,
                           uintptr_t base) {
    return gemm_problem({.a = tensor(base, in, ta == kYes ? Shape{k, m} : Shape{m, k}),
                         .b = tensor(base + 0x1000, in, tb == kYes ? Shape{n, k} : Shape{k, n}),
                         .c = tensor(base + 0x2000, out, {m, n}),
                         .trans_a = ta,
                         .trans_b = tb});
  };
  const DType bf = DType::kBF16, f32 = DType::kF32;
  const GemmProblem mixed = problem(bf, f32, 8, 8, 8, kNo, kNo, 0x10000);
  CHECK((mixed.in == bf && mixed.out == f32));
  const GemmProblem first = problem(bf, bf, 8, 8, 8, kNo, kNo, 0x10000);
  CHECK(first == problem(bf, bf, 8, 8, 8, kNo, kNo, 0x50000));
  for (const GemmProblem& other :
       {problem(bf, f32, 8, 8, 8, kNo, kNo, 0x10000), problem(f32, f32, 8, 8, 8, kNo, kNo, 0x10000),
        problem(bf, bf, 9, 8, 8, kNo, kNo, 0x10000), problem(bf, bf, 8, 9, 8, kNo, kNo, 0x10000),
        problem(bf, bf, 8, 8, 9, kNo, kNo, 0x10000), problem(bf, bf, 8, 8, 8, kYes, kNo, 0x10000),
        problem(bf, bf, 8, 8, 8, kNo, kYes, 0x10000), problem(bf, bf, 8, 8, 8, kNo, kNo, 0x10010)}) {
    CHECK(first != other);
    CHECK((first < other) != (other < first));
  }
}
