// RMSNorm and its gradient, at the speed of a copy. A team of threads (a warp, or the
// block) holds a row in registers, in its storage format. Rows that are too wide, or not a multiple of 16 bytes, are
// read twice. The weight's gradient is summed over a fixed partition of the rows, then over the parts, in order.
#include "cuda/rmsnorm.h"

#include <algorithm>

#include "cuda/cuda_ops.h"
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/reduce.h"
#include "cuda/vec.h"

namespace tokamak {
namespace {

constexpr int kThreads = 256;
constexpr int kResident = 768;      // minimum resident threads per SM in forward; more would spill on sm_80
constexpr int kMaxRowBlocks = 512;  // of backward's grid
constexpr int kMinBlockRows = 8;    // one per warp

// The number of blocks that are resident at once, equally many on each SM; at most `most`.
template <class... Parameters>
unsigned blocks_of_a_wave(void (*kernel)(Parameters...), int threads, int most) {
  int device = 0, processors = 0, resident = 0;
  TOKAMAK_CUDA(cudaGetDevice(&device));
  TOKAMAK_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  TOKAMAK_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, 0));
  return static_cast<unsigned>(std::min(most, processors * std::clamp(most / processors, 1, resident)));
}

// A team: kSize of a block's kBlock threads, for one row. Each thread has kVectors vectors of the row, kSize apart.
template <int kBlockThreads, int kTeamThreads, int kVectorsOfThread>
struct Team {
  static constexpr int kBlock = kBlockThreads, kSize = kTeamThreads, kVectors = kVectorsOfThread;
  static constexpr int kTeams = kBlock / kSize;  // per block
  static_assert(kSize == kWarp || kSize == kBlock);

  __device__ static int index() { return static_cast<int>(threadIdx.x) / kSize; }
  __device__ static int member() { return static_cast<int>(threadIdx.x) % kSize; }
  // Every member gets the result. `partial` as in block_reduce.
  __device__ static float sum(float x, float* partial) {
    if constexpr (kSize == kWarp) {
      return warp_sum(x);
    } else {
      return block_sum<kBlock>(x, partial);
    }
  }
};

template <int kWidth, class T>
__device__ Vec<kWidth> load_weight(const T* at, float offset) {
  auto weight = load<kWidth>(at);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) weight[i] += offset;
  return weight;
}

template <int kWidth>
__device__ Vec<kWidth> normalised(Vec<kWidth> x, float rstd, const Vec<kWidth>& weight) {
#pragma unroll
  for (int i = 0; i < kWidth; ++i) x[i] = x[i] * rstd * weight[i];
  return x;
}

template <class T, int kWidth>
__device__ void store_normalised(const NormForward<T>& f, int64_t at, int64_t c, const Vec<kWidth>& x, float rstd,
                                 const T* __restrict__ weights) {
  auto y = normalised(x, rstd, load_weight<kWidth>(weights + c, f.offset));
  if (f.onto != nullptr) y = y + load<kWidth>(f.onto + at + c);
  store(f.y + at + c, y);
}

template <class T, class Team>
__global__ void __launch_bounds__(Team::kBlock, kResident / Team::kBlock) forward(NormForward<T> f) {
  constexpr int kWidth = kVecWidth<T>, kVectors = Team::kVectors;
  __shared__ float partial[Team::kBlock / kWarp];
  const int64_t row = int64_t{blockIdx.x} * Team::kTeams + Team::index();
  if (row >= f.rows.count) return;
  const int64_t at = f.rows.at(row);
  const int width = static_cast<int>(f.rows.width), first = Team::member() * kWidth;
  constexpr int kStep = Team::kSize * kWidth;
  Packed<T, kWidth> x[kVectors] = {};  // zeros past the end of the row
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int c = first + k * kStep;
    if (c >= width) break;
    x[k] = load_packed<kWidth>(f.x + at + c);
  }
  float squares = 0;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const auto v = unpack(x[k]);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) squares += v[i] * v[i];
  }
  const float rstd = f.rstd_of(Team::sum(squares, partial));
  if (Team::member() == 0) f.rstd[row] = rstd;
  const T* __restrict__ weights = f.weight;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const int c = first + k * kStep;
    if (c >= width) break;
    store_normalised(f, at, c, unpack(x[k]), rstd, weights);
  }
}

template <class T, int kWidth>
__global__ void forward_wide(NormForward<T> f) {
  __shared__ float partial[kThreads / kWarp];
  const int64_t at = f.rows.at(blockIdx.x), width = f.rows.width, first = int64_t{threadIdx.x} * kWidth;
  constexpr int kStep = kThreads * kWidth;
  float squares = 0;
  for (int64_t c = first; c < width; c += kStep) {
    const auto x = load<kWidth>(f.x + at + c);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) squares += x[i] * x[i];
  }
  const float rstd = f.rstd_of(block_sum<kThreads>(squares, partial));
  if (threadIdx.x == 0) f.rstd[blockIdx.x] = rstd;
  for (int64_t c = first; c < width; c += kStep) {
    store_normalised(f, at, c, load<kWidth>(f.x + at + c), rstd, f.weight);
  }
}

// Turns the sum of dy weight x into the factor of x in dx.
__device__ inline float along(float projection, float rstd, int64_t width) {
  return projection * rstd * rstd / static_cast<float>(width);
}

template <int kWidth>
__device__ float projection(const Vec<kWidth>& dy, const Vec<kWidth>& weight, const Vec<kWidth>& x) {
  float total = 0;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) total += dy[i] * weight[i] * x[i];
  return total;
}

// Accumulates dweight, and turns `past`, the gradient of the skip connection, into dx.
template <int kWidth>
__device__ void backward_vector(const Vec<kWidth>& dy, const Vec<kWidth>& weight, const Vec<kWidth>& x, float rstd,
                                float factor, Vec<kWidth>& past, Vec<kWidth>& dweight) {
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    dweight[i] += dy[i] * x[i] * rstd;
    past[i] = rstd * (dy[i] * weight[i] - x[i] * factor) + past[i];
  }
}

// Adds dweight of the block's teams, in order, to the block's part.
template <class T, class Team>
__device__ void write_part(const Vec<kVecWidth<T>> (&dweight)[Team::kVectors], float* part, int width) {
  constexpr int kWidth = kVecWidth<T>, kStep = Team::kSize * kWidth;
  __shared__ __align__(16) float total[Team::kTeams > 1 ? Team::kVectors * kStep : 1];
#pragma unroll 1
  for (int team = 0; team < Team::kTeams; ++team) {
    if (Team::index() == team) {
#pragma unroll
      for (int k = 0; k < Team::kVectors; ++k) {
        const int c = Team::member() * kWidth + k * kStep;
        if (c >= width) break;
        const auto sum = team > 0 ? load<kWidth>(total + c) + dweight[k] : dweight[k];
        store(team + 1 < Team::kTeams ? total + c : part + c, sum);
      }
    }
    if constexpr (Team::kTeams > 1) __syncthreads();
  }
}

template <class T, class Team>
__global__ void __launch_bounds__(Team::kBlock) backward(NormBackward<T> b) {
  constexpr int kWidth = kVecWidth<T>, kVectors = Team::kVectors, kStep = Team::kSize * kWidth;
  __shared__ float partial[2][Team::kBlock / kWarp];  // alternates between rows: one barrier per row
  const int width = static_cast<int>(b.rows.width), first = Team::member() * kWidth;
  const int64_t begin = int64_t{blockIdx.x} * b.block_rows, end = min(b.rows.count, begin + b.block_rows);
  const T* __restrict__ weights = b.weight;
  Vec<kWidth> dweight[kVectors] = {};
  int parity = 0;
  for (int64_t row = begin + Team::index(); row < end; row += Team::kTeams, parity ^= 1) {
    const int64_t at = b.rows.at(row);
    Packed<T, kWidth> dy[kVectors] = {}, x[kVectors] = {}, past[kVectors] = {};
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      const int c = first + k * kStep;
      if (c >= width) break;
      dy[k] = load_packed<kWidth>(b.dy + at + c);
      x[k] = load_packed<kWidth>(b.x + at + c);
      if (b.dresidual != nullptr) past[k] = load_packed<kWidth>(b.dresidual + at + c);
    }
    const float rstd = b.rstd[row];
    float total = 0;
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      const int c = first + k * kStep;
      if (c < width) total += projection(unpack(dy[k]), load_weight<kWidth>(weights + c, b.offset), unpack(x[k]));
    }
    const float factor = along(Team::sum(total, partial[parity]), rstd, width);
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      const int c = first + k * kStep;
      if (c >= width) break;
      auto dx = unpack(past[k]);
      const auto weight = load_weight<kWidth>(weights + c, b.offset);
      if (b.y != nullptr) store(b.y + at + c, normalised(unpack(x[k]), rstd, weight));
      backward_vector(unpack(dy[k]), weight, unpack(x[k]), rstd, factor, dx, dweight[k]);
      store(b.dx + at + c, dx);
    }
  }
  write_part<T, Team>(dweight, b.parts + int64_t{blockIdx.x} * width, width);
}

template <class T, int kWidth>
__global__ void backward_wide(NormBackward<T> b) {
  __shared__ float partial[2][kThreads / kWarp];
  const int64_t first = int64_t{threadIdx.x} * kWidth, width = b.rows.width;
  constexpr int kStep = kThreads * kWidth;
  const int64_t begin = int64_t{blockIdx.x} * b.block_rows, end = min(b.rows.count, begin + b.block_rows);
  float* part = b.parts + int64_t{blockIdx.x} * width;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t at = b.rows.at(row);
    const float rstd = b.rstd[row];
    float total = 0;
    for (int64_t c = first; c < width; c += kStep) {
      const auto weight = load_weight<kWidth>(b.weight + c, b.offset);
      total += projection(load<kWidth>(b.dy + at + c), weight, load<kWidth>(b.x + at + c));
    }
    const float factor = along(block_sum<kThreads>(total, partial[row % 2]), rstd, width);
    for (int64_t c = first; c < width; c += kStep) {
      Vec<kWidth> dx = {}, dweight = {};
      if (b.dresidual != nullptr) dx = load<kWidth>(b.dresidual + at + c);
      if (row > begin) dweight = load<kWidth>(part + c);
      const auto weight = load_weight<kWidth>(b.weight + c, b.offset), x = load<kWidth>(b.x + at + c);
      backward_vector(load<kWidth>(b.dy + at + c), weight, x, rstd, factor, dx, dweight);
      store(b.dx + at + c, dx);
      if (b.y != nullptr) store(b.y + at + c, normalised(x, rstd, weight));
      store(part + c, dweight);
    }
  }
}

// Calls body<Team>() with the smallest team that holds rows of this many vectors; false if none does.
template <class Body>
bool with_team(int64_t vectors, const Body& body) {
  if (vectors <= 32) {
    body.template operator()<Team<256, kWarp, 1>>();
  } else if (vectors <= 64) {
    body.template operator()<Team<256, kWarp, 2>>();
  } else if (vectors <= 128) {
    body.template operator()<Team<256, kWarp, 4>>();
  } else if (vectors <= 256) {
    body.template operator()<Team<256, 256, 1>>();
  } else if (vectors <= 512) {
    body.template operator()<Team<256, 256, 2>>();
  } else if (vectors <= 1024) {
    body.template operator()<Team<256, 256, 4>>();
  } else if (vectors <= 2048) {
    body.template operator()<Team<512, 512, 4>>();
  } else {
    return false;
  }
  return true;
}

}  // namespace

int64_t norm_parts_bytes(int64_t rows, int64_t width) {
  return std::min<int64_t>(kMaxRowBlocks, (rows + kMinBlockRows - 1) / kMinBlockRows) * width * size_of(DType::kF32);
}

int64_t rmsnorm_backward_scratch(const Workload& workload) {
  return norm_parts_bytes(workload.tokens, workload.hidden);
}

template <class T>
void rmsnorm_rows(cudaStream_t stream, const NormForward<T>& f) {
  const int64_t rows = f.rows.count, width = f.rows.width;
  const auto run = [&]<int kWidth>() {
    const bool held = kWidth > 1 && with_team(width / kWidth, [&]<class Team>() {
                        launch({"rmsnorm", blocks_for(rows, Team::kTeams), Team::kBlock}, stream, forward<T, Team>, f);
                      });
    if (held) return;
    launch({"rmsnorm, wide", static_cast<unsigned>(rows), kThreads}, stream, forward_wide<T, kWidth>, f);
  };
  with_vec_width<T>(width, run, f.x, f.weight, f.y, f.onto);
}

template <class T>
void rmsnorm_backward_rows(cudaStream_t stream, NormBackward<T> b, float* dweight) {
  const int64_t rows = b.rows.count, width = b.rows.width;
  if (rows == 0) return;
  unsigned blocks = 0;
  // One wave of blocks with equal numbers of rows: a second wave would wait for the slowest block of the first.
  const auto run_in_a_wave = [&](const char* name, auto kernel, int threads) {
    const int64_t wave = blocks_of_a_wave(kernel, threads, kMaxRowBlocks);
    b.block_rows = std::max<int64_t>(kMinBlockRows, (rows + wave - 1) / wave);
    blocks = blocks_for(rows, b.block_rows);
    launch({name, blocks, static_cast<unsigned>(threads)}, stream, kernel, b);
  };
  const auto run = [&]<int kWidth>() {
    const bool held = kWidth > 1 && with_team(width / kWidth, [&]<class Team>() {
                        run_in_a_wave("rmsnorm_backward", backward<T, Team>, Team::kBlock);
                      });
    if (!held) run_in_a_wave("rmsnorm_backward, wide", backward_wide<T, kWidth>, kThreads);
  };
  with_vec_width<T>(width, run, b.dy, b.x, b.weight, b.dresidual, b.dx, b.y);
  add_parts(stream, b.parts, int64_t{blocks}, width, dweight);
}

template void rmsnorm_rows(cudaStream_t, const NormForward<float>&);
template void rmsnorm_rows(cudaStream_t, const NormForward<bf16>&);
template void rmsnorm_backward_rows(cudaStream_t, NormBackward<float>, float*);
template void rmsnorm_backward_rows(cudaStream_t, NormBackward<bf16>, float*);

void CudaOps::do_rmsnorm(Stream& stream, const RmsNorm& args) {
  with_act_type(args.x.dtype(), [&]<class T>(T) {
    rmsnorm_rows<T>(handle(stream), {.x = args.x.as<T>(),
                                     .weight = args.weight.as<T>(),
                                     .y = args.y.as<T>(),
                                     .rstd = args.rstd.as<float>(),
                                     .rows = {.count = args.x.dim(0), .width = args.x.dim(1), .token = args.x.dim(1)},
                                     .eps = args.eps,
                                     .onto = args.onto ? args.onto.as<T>() : nullptr,
                                     .offset = args.offset});
  });
}

void CudaOps::do_rmsnorm_backward(Stream& stream, const RmsNormBackward& args) {
  const NormRows rows{.count = args.x.dim(0), .width = args.x.dim(1), .token = args.x.dim(1)};
  auto* parts = reinterpret_cast<float*>(scratch(norm_parts_bytes(rows.count, rows.width)));
  with_act_type(args.x.dtype(), [&]<class T>(T) {
    rmsnorm_backward_rows<T>(handle(stream),
                             {.dy = args.dy.as<T>(),
                              .x = args.x.as<T>(),
                              .weight = args.weight.as<T>(),
                              .rstd = args.rstd.as<float>(),
                              .dresidual = args.dresidual ? args.dresidual.as<T>() : nullptr,
                              .dx = args.dx.as<T>(),
                              .y = args.y ? args.y.as<T>() : nullptr,
                              .parts = parts,
                              .rows = rows,
                              .offset = args.offset},
                             args.dweight.as<float>());
  });
}

}  // namespace tokamak
