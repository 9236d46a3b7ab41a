// Sums over the rows of a matrix. Each thread sums some columns over all rows, so nothing is shared.
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/partition.h"

namespace tokamak {
namespace {

constexpr int64_t kColumnsAtOnce = 64;  // summed together
constexpr int64_t kRows = 128;          // per partial sum: one f32 sum of very many terms loses digits

}  // namespace

template <class T>
void add_columns(const T* x, int64_t rows, int64_t width, float* sums) {
  parallel_for((width + kColumnsAtOnce - 1) / kColumnsAtOnce, row_grain(rows * kColumnsAtOnce),
               [&](int64_t first, int64_t last) {
                 for (int64_t begin = first * kColumnsAtOnce; begin < std::min(width, last * kColumnsAtOnce);
                      begin += kColumnsAtOnce) {
                   const int64_t columns = std::min(kColumnsAtOnce, width - begin);
                   float total[kColumnsAtOnce] = {};
                   for (int64_t row = 0; row < rows; row += kRows) {
                     float piece[kColumnsAtOnce] = {};
                     for (int64_t n = row; n < std::min(rows, row + kRows); ++n) {
                       const T* from = x + n * width + begin;
#pragma omp simd
                       for (int64_t c = 0; c < columns; ++c) piece[c] += to_float(from[c]);
                     }
#pragma omp simd
                     for (int64_t c = 0; c < columns; ++c) total[c] += piece[c];
                   }
#pragma omp simd
                   for (int64_t c = 0; c < columns; ++c) sums[begin + c] += total[c];
                 }
               });
}
template void add_columns(const float*, int64_t, int64_t, float*);

void CpuOps::do_column_sums(Stream&, const ColumnSums& args) {
  with_act_type(args.x.dtype(),
                [&]<class T>(T) { add_columns(args.x.as<T>(), args.x.dim(0), args.x.dim(1), args.sums.as<float>()); });
}

}  // namespace tokamak
