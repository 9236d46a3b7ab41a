// Products for the emulator, where cuBLASLt cannot run: the formula of ops.h, summed in double.
#include "cuda/gemm/gemm.h"

#include <vector>

#include "streams.h"

namespace tokamak {

namespace {

double element(const Tensor& x, int64_t at) {
  return x.dtype() == DType::kF32 ? static_cast<double>(x.as<float>()[at]) : to_float(x.as<bf16>()[at]);
}

// op(x) as (rows, columns) of doubles.
std::vector<double> matrix(const Tensor& x, Transpose transpose) {
  const int64_t rows = x.dim(0), columns = x.dim(1);
  std::vector<double> out(static_cast<size_t>(rows * columns));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t to = transpose == Transpose::kYes ? c * rows + r : r * columns + c;
      out[static_cast<size_t>(to)] = element(x, r * columns + c);
    }
  }
  return out;
}

void multiply(const Gemm& args) {
  const emulator::Access access;
  const int64_t m = args.c.dim(0), n = args.c.dim(1),
                k = args.trans_a == Transpose::kYes ? args.a.dim(0) : args.a.dim(1);
  const std::vector<double> a = matrix(args.a, args.trans_a), b = matrix(args.b, args.trans_b);
  std::vector<double> row(static_cast<size_t>(n));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const double before = args.write == Write::kAccumulate ? element(args.c, i * n + j) : 0;
      const double residual = args.residual ? double{args.residual_scale} * element(args.residual, i * n + j) : 0;
      row[static_cast<size_t>(j)] = before + residual + (args.bias ? element(args.bias, j) : 0);
    }
    for (int64_t l = 0; l < k; ++l) {
      const double x = double{args.alpha} * a[static_cast<size_t>(i * k + l)];
      for (int64_t j = 0; j < n; ++j) row[static_cast<size_t>(j)] += x * b[static_cast<size_t>(l * n + j)];
    }
    for (int64_t j = 0; j < n; ++j) {
      const auto value = static_cast<float>(row[static_cast<size_t>(j)]);
      if (args.c.dtype() == DType::kF32) {
        args.c.as<float>()[i * n + j] = value;
      } else {
        args.c.as<bf16>()[i * n + j] = bf16(value);
      }
    }
  }
}

}  // namespace

struct CudaGemm::Impl {};
CudaGemm::CudaGemm(const RuntimeOptions&) {}
CudaGemm::~CudaGemm() = default;

void CudaGemm::run(cudaStream_t stream, const Gemm& args, std::byte*) {
  emulator::enqueue(stream, [args] { multiply(args); });
}

}  // namespace tokamak
