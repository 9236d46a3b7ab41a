// Sums over the rows of a matrix, read once. A block sums some columns over a fixed part of the rows, each warp every
// kWarps-th row. The parts are added in order, so every launch gives the same bits.
#include "cuda/cuda_ops.h"
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/reduce.h"
#include "cuda/rmsnorm.h"
#include "cuda/vec.h"

namespace tokamak {
namespace {

constexpr int kWarps = 8;          // per block
constexpr int kMaxRowBlocks = 64;  // with the column blocks they make several waves on current GPUs
constexpr int kMinBlockRows = 32;  // four per warp
constexpr int kColumns = kWarp;    // columns whose parts a block of add_up adds
constexpr int kAdders = 16;        // warps of such a block, which divide the parts

int64_t rows_per_block(int64_t rows) {
  return std::max<int64_t>(kMinBlockRows, (rows + kMaxRowBlocks - 1) / kMaxRowBlocks);
}

template <class T, int kWidth>
__global__ void sum_rows(const T* __restrict__ x, int64_t rows, int64_t width, int64_t block_rows, float* parts) {
  constexpr int kAcross = kWarp * kWidth;  // columns per block
  __shared__ __align__(16) float sums[kWarps][kAcross];
  const int64_t first = int64_t{blockIdx.x} * kAcross, c = first + lane() * kWidth;
  const int64_t begin = int64_t{blockIdx.y} * block_rows, end = min(rows, begin + block_rows);
  Vec<kWidth> sum = {};
  if (c < width) {
#pragma unroll 4
    for (int64_t row = begin + warp(); row < end; row += kWarps) sum = sum + load<kWidth>(x + row * width + c);
  }
  store(&sums[warp()][lane() * kWidth], sum);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kAcross && first + i < width; i += kWarps * kWarp) {
    float total = sums[0][i];
    for (int w = 1; w < kWarps; ++w) total += sums[w][i];
    parts[int64_t{blockIdx.y} * width + first + i] = total;
  }
}

// Each warp of a block adds every kAdders-th part, then the first warp adds the warps' sums.
__global__ void add_up(const float* parts, int64_t count, int64_t width, float* sums) {
  __shared__ float partial[kAdders][kColumns];
  const int64_t c = int64_t{blockIdx.x} * kColumns + lane();
  float sum = 0;
  if (c < width) {
#pragma unroll 8
    for (int64_t p = warp(); p < count; p += kAdders) sum += parts[p * width + c];
  }
  partial[warp()][lane()] = sum;
  __syncthreads();
  if (warp() > 0 || c >= width) return;
  for (int w = 1; w < kAdders; ++w) sum += partial[w][lane()];
  sums[c] += sum;
}

}  // namespace

void add_parts(cudaStream_t stream, const float* parts, int64_t count, int64_t width, float* sums) {
  launch({"add_parts", blocks_for(width, kColumns), kAdders * kWarp}, stream, add_up, parts, count, width, sums);
}

int64_t column_sums_scratch(const Workload& workload) {
  const int64_t blocks = std::min<int64_t>(kMaxRowBlocks, (workload.tokens + kMinBlockRows - 1) / kMinBlockRows);
  return blocks * workload.heads.qkv_width() * size_of(DType::kF32);
}

void CudaOps::do_column_sums(Stream& stream, const ColumnSums& args) {
  const int64_t rows = args.x.dim(0), width = args.x.dim(1), block_rows = rows_per_block(rows);
  if (rows == 0) return;
  const unsigned blocks = blocks_for(rows, block_rows);
  auto* parts = reinterpret_cast<float*>(scratch(blocks * width * size_of(DType::kF32)));
  with_act_type(args.x.dtype(), [&]<class T>(T) {
    const auto run = [&]<int kWidth>() {
      launch({"column_sums", {blocks_for(width, kWarp * kWidth), blocks}, kWarps * kWarp}, handle(stream),
             sum_rows<T, kWidth>, args.x.as<T>(), rows, width, block_rows, parts);
    };
    with_vec_width<T>(width, run, args.x.as<T>());
  });
  add_parts(handle(stream), parts, int64_t{blocks}, width, args.sums.as<float>());
}

}  // namespace tokamak
