// GEMMs on the CPU, through oneDNN: the only file that sees its headers is gemm.cc.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "tensor/tensor.h"

namespace tokamak {

// A matrix operand of a GEMM: element (i, j) is data[i * row_stride + j * column_stride]; one stride is 1.
struct MatrixView {
  void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t row_stride = 0;
  int64_t column_stride = 1;

  MatrixView() = default;
  explicit MatrixView(const Tensor& t)  // (rows, columns)
      : data(t.data()), dtype(t.dtype()), rows(t.dim(0)), columns(t.dim(1)), row_stride(t.dim(1)) {}
  MatrixView transposed() const {
    MatrixView out = *this;
    std::swap(out.rows, out.columns);
    std::swap(out.row_stride, out.column_stride);
    return out;
  }
};

// c = alpha a b [+ residual_scale residual] [+ bias] [+ c]. Holds the library's engine and its compiled kernels, one
// per shape and pair of scales.
class GemmEngine {
 public:
  struct Call {
    MatrixView a;         // (M, K)
    MatrixView b;         // (K, N), dtype of a
    MatrixView c;         // (M, N), f32 or the dtype of a
    MatrixView residual;  // (M, N), dtype and strides of c; data == nullptr: none; may be c
    MatrixView bias;      // (1, N), dtype of c; data == nullptr: none; not with `accumulate`
    bool accumulate = false;
    float alpha = 1;
    float residual_scale = 1;  // not 0
  };

  GemmEngine();
  ~GemmEngine();
  void run(const Call& call);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// GEMMs of few rows with a column-major matrix, as in decoding (gemv.cc). They are bound by reading the matrix, which
// is read once, sequentially. A row's bits depend neither on the other rows nor on the number of threads. So a sequence
// has the same result in any batch of up to kFewRows.
inline constexpr int64_t kFewRows = 8;  // above this, the GEMM is compute-bound

// Whether `call` is such a GEMM: a row-major, b column-major, at most kFewRows rows.
bool is_few_rows(const GemmEngine::Call& call);

// `scratch` grows to the size that a's rows need.
void multiply_few_rows(const GemmEngine::Call& call, std::vector<std::byte>& scratch);

}  // namespace tokamak
