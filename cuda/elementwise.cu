// Casts, averages, caps, zeros and fills of flat arrays. Threads stride over the array, so that the grid fits the GPU
// for any size.
#include "base/error.h"
#include "base/math.h"
#include "cuda/cuda_ops.h"
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/vec.h"

namespace tokamak {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 4096;  // several waves on any current GPU

unsigned blocks_of(int64_t items) { return blocks_for(std::min(items, kMaxBlocks * kThreads), kThreads); }

template <class From, class To>
__global__ void convert(const From* src, To* dst, int64_t count) {
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += int64_t{gridDim.x} * kThreads) {
    dst[i] = from_float<To>(to_float(src[i]));
  }
}

template <class From>
__global__ void accumulate(const From* src, float* dst, int64_t count) {
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += int64_t{gridDim.x} * kThreads) {
    dst[i] += to_float(src[i]);
  }
}

__global__ void move_average(const float* x, float* average, int64_t count, float weight) {
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += int64_t{gridDim.x} * kThreads) {
    const float before = average[i];
    average[i] = before + weight * (x[i] - before);
  }
}

template <class T>
__global__ void cap_values(T* x, int64_t count, TanhCap cap) {
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += int64_t{gridDim.x} * kThreads) {
    x[i] = from_float<T>(cap(to_float(x[i])));
  }
}

__global__ void zero_if_not_finite(float* x, int64_t count) {
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += int64_t{gridDim.x} * kThreads) {
    if (!std::isfinite(x[i])) x[i] = 0;
  }
}

template <class T>
__global__ void fill_with(T* x, int64_t count, T value) {
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += int64_t{gridDim.x} * kThreads) {
    x[i] = value;
  }
}

template <class T>
void run_fill(const Fill& args, T value, cudaStream_t stream) {
  const int64_t count = args.x.count();
  launch({"fill", blocks_of(count), kThreads}, stream, fill_with<T>, args.x.as<T>(), count, value);
}

}  // namespace

void CudaOps::do_cast(Stream& stream, const Cast& args) {
  const int64_t count = args.src.count();
  if (args.write == Write::kOverwrite && args.src.dtype() == args.dst.dtype()) {
    TOKAMAK_CUDA(cudaMemcpyAsync(args.dst.data(), args.src.data(), static_cast<size_t>(args.dst.bytes()),
                                 cudaMemcpyDefault, handle(stream)));
    return;
  }
  with_act_type(args.src.dtype(), [&]<class From>(From) {
    const From* src = args.src.as<From>();
    if (args.write == Write::kAccumulate) {
      launch({"cast, accumulated", blocks_of(count), kThreads}, handle(stream), accumulate<From>, src,
             args.dst.as<float>(), count);
    } else {
      with_act_type(args.dst.dtype(), [&]<class To>(To) {
        launch({"cast", blocks_of(count), kThreads}, handle(stream), convert<From, To>, src, args.dst.as<To>(), count);
      });
    }
  });
}

void CudaOps::do_average(Stream& stream, const Average& args) {
  const int64_t count = args.x.count();
  launch({"average", blocks_of(count), kThreads}, handle(stream), move_average, args.x.as<float>(),
         args.average.as<float>(), count, static_cast<float>(args.weight));
}

void CudaOps::do_soft_cap(Stream& stream, const SoftCap& args) {
  const int64_t count = args.x.count();
  with_act_type(args.x.dtype(), [&]<class T>(T) {
    launch({"soft_cap", blocks_of(count), kThreads}, handle(stream), cap_values<T>, args.x.as<T>(), count,
           TanhCap(args.cap));
  });
}

void CudaOps::do_zero_non_finite(Stream& stream, const ZeroNonFinite& args) {
  const int64_t count = args.x.count();
  launch({"zero_non_finite", blocks_of(count), kThreads}, handle(stream), zero_if_not_finite, args.x.as<float>(),
         count);
}

void CudaOps::do_fill(Stream& stream, const Fill& args) {
  switch (args.x.dtype()) {
    case DType::kF32:
      return run_fill(args, static_cast<float>(args.value), handle(stream));
    case DType::kBF16:
      return run_fill(args, bf16(static_cast<float>(args.value)), handle(stream));
    case DType::kF64:
      return run_fill(args, args.value, handle(stream));
    case DType::kI32:
      return run_fill(args, static_cast<int32_t>(args.value), handle(stream));
  }
  TOKAMAK_UNREACHABLE("dtype of ", args.x.text());
}

}  // namespace tokamak
