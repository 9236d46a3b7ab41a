// Root mean square normalisation, with the residual addition in the same pass. The gradient of the weight is a sum over
// all tokens: it is formed over a fixed partition of the rows and added up in order, whatever the number of threads.
#include <cmath>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/partition.h"
#include "backend/cpu/workspace.h"

namespace tokamak {
namespace {

constexpr int64_t kMaxRowBlocks = 128;
constexpr int64_t kMinBlockRows = 16;
constexpr int64_t kColumns = 64;  // columns whose partial sums are added up together

int64_t rows_per_block(int64_t rows) { return std::max(kMinBlockRows, (rows + kMaxRowBlocks - 1) / kMaxRowBlocks); }

// Sums over wide rows are formed in pieces: a plain f32 sum of 16384 terms, where it is not vectorised, loses two
// digits.
constexpr int64_t kPiece = 256;

template <class T>
float sum_of_squares(const T* x, int64_t width) {
  float total = 0;
  for (int64_t begin = 0; begin < width; begin += kPiece) {
    float piece = 0;
#pragma omp simd reduction(+ : piece)
    for (int64_t c = begin; c < std::min(width, begin + kPiece); ++c) {
      const float v = to_float(x[c]);
      piece += v * v;
    }
    total += piece;
  }
  return total;
}

template <class T>
void add(const T* x, const T* residual, T* sum, int64_t width) {
#pragma omp simd
  for (int64_t c = 0; c < width; ++c) sum[c] = from_float<T>(to_float(x[c]) + to_float(residual[c]));
}

template <class T>
void scale(const T* x, const T* weight, float rstd, T* y, int64_t width) {
#pragma omp simd
  for (int64_t c = 0; c < width; ++c) y[c] = from_float<T>(to_float(x[c]) * rstd * to_float(weight[c]));
}

// sum of dy weight x
template <class T>
float projection(const T* dy, const T* x, const T* weight, int64_t width) {
  float total = 0;
  for (int64_t begin = 0; begin < width; begin += kPiece) {
    float piece = 0;
#pragma omp simd reduction(+ : piece)
    for (int64_t c = begin; c < std::min(width, begin + kPiece); ++c) {
      piece += to_float(dy[c]) * to_float(weight[c]) * to_float(x[c]);
    }
    total += piece;
  }
  return total;
}

template <class T>
struct BackwardRow {
  const T* dy;
  const T* x;
  const T* weight;
  const T* dresidual;  // or null
  T* dx;
  float* dweight;  // partial sums of this block of rows
  float rstd;
};

template <class T>
void backward_row(const BackwardRow<T>& row, int64_t width) {
  const auto [dy, x, weight, dresidual, dx, dweight, rstd] = row;
  const float along = projection(dy, x, weight, width) * rstd * rstd / static_cast<float>(width);
  // dx may be dy or dresidual: each element is read before it is written.
  const auto element = [=](int64_t c, float past) {
    const float d = to_float(dy[c]), v = to_float(x[c]);
    dweight[c] += d * v * rstd;
    dx[c] = from_float<T>(rstd * (d * to_float(weight[c]) - v * along) + past);
  };
  if (dresidual != nullptr) {
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) element(c, to_float(dresidual[c]));
  } else {
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) element(c, 0.0f);
  }
}

// dweight[c] += partial[0][c] + partial[1][c] + ..., in that order
void add_partial_sums(const float* partial, int64_t blocks, int64_t width, float* dweight) {
  parallel_for((width + kColumns - 1) / kColumns, 16, [&](int64_t first, int64_t last) {
    for (int64_t begin = first * kColumns; begin < std::min(width, last * kColumns); begin += kColumns) {
      const int64_t columns = std::min(kColumns, width - begin);
      float total[kColumns] = {};
      for (int64_t b = 0; b < blocks; ++b) {
        const float* from = partial + b * width + begin;
#pragma omp simd
        for (int64_t c = 0; c < columns; ++c) total[c] += from[c];
      }
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) dweight[begin + c] += total[c];
    }
  });
}

}  // namespace

int64_t rmsnorm_backward_workspace(const Workload& workload) {
  return kMaxRowBlocks * workload.hidden * size_of(DType::kF32);
}

void CpuOps::do_rmsnorm(Stream&, const RmsNorm& args) {
  const int64_t rows = args.x.dim(0), width = args.x.dim(1);
  auto* rstd = args.rstd.as<float>();
  with_act_type(args.x.dtype(), [&]<class T>(T) {
    const T* x = args.x.as<T>();
    const T* residual = args.residual ? args.residual.as<T>() : nullptr;
    const T* weight = args.weight.as<T>();
    T* sum = residual != nullptr ? args.sum.as<T>() : nullptr;
    T* y = args.y.as<T>();
    parallel_for(rows, row_grain(width), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const T* in = x + n * width;
        if (residual != nullptr) {
          add(in, residual + n * width, sum + n * width, width);
          in = sum + n * width;
        }
        rstd[n] = 1.0f / std::sqrt(sum_of_squares(in, width) / static_cast<float>(width) + args.eps);
        scale(in, weight, rstd[n], y + n * width, width);
      }
    });
  });
}

void CpuOps::do_rmsnorm_backward(Stream&, const RmsNormBackward& args) {
  const int64_t rows = args.x.dim(0), width = args.x.dim(1), block = rows_per_block(rows);
  const int64_t blocks = (rows + block - 1) / block;
  auto* partial = scratch<float>(workspace(), blocks * width);
  const auto* rstd = args.rstd.as<float>();
  with_act_type(args.x.dtype(), [&]<class T>(T) {
    const T* dy = args.dy.as<T>();
    const T* x = args.x.as<T>();
    const T* weight = args.weight.as<T>();
    const T* dresidual = args.dresidual ? args.dresidual.as<T>() : nullptr;
    T* dx = args.dx.as<T>();
    parallel_for(blocks, 1, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        float* dweight = partial + b * width;
        std::fill(dweight, dweight + width, 0.0f);
        for (int64_t n = b * block; n < std::min(rows, (b + 1) * block); ++n) {
          const int64_t at = n * width;
          backward_row<T>(
              {dy + at, x + at, weight, dresidual != nullptr ? dresidual + at : nullptr, dx + at, dweight, rstd[n]},
              width);
        }
      }
    });
  });
  add_partial_sums(partial, blocks, width, args.dweight.as<float>());
}

}  // namespace tokamak
