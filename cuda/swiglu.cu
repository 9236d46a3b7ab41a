// SwiGLU, GeGLU and their gradients. One grid row of blocks per token; 16 bytes per access if the width allows. The
// gradient may overwrite its inputs: each thread reads its elements before it writes them.
#include "base/math.h"
#include "cuda/cuda_ops.h"
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/ptx.h"
#include "cuda/vec.h"

namespace tokamak {
namespace {

constexpr int kThreads = 256;

// f32 uses the CPU's formulas. bf16 uses fast exponential and division, within 2^-20, while bf16 rounds by 2^-9. With
// IEEE versions the instructions, not memory, would be the limit.
template <class T>
__device__ float sigmoid_as(float x) {
  if constexpr (std::is_same_v<T, float>) {
    return sigmoid(x);
  } else {
    return __fdividef(1.0f, 1.0f + ptx::exp2_approx(-kLog2E * x));
  }
}

// g(x) = x sigmoid(inner(x)); exact(x) is g in the CPU's arithmetic.
struct Silu {
  __device__ static float inner(float x) { return x; }
  __device__ static float exact(float x) { return silu(x); }
  __device__ static float gradient(float x, float s) { return silu_gradient(x, s); }
};
struct Gelu {
  __device__ static float inner(float x) { return gelu_inner(x); }
  __device__ static float exact(float x) { return gelu(x); }
  __device__ static float gradient(float x, float s) { return gelu_gradient(x, s); }
};

template <class G, class T>
__device__ float value_as(float x, float s) {  // s = sigmoid_as(inner(x))
  if constexpr (std::is_same_v<T, float>) {
    return G::exact(x);
  } else {
    return x * s;
  }
}

// Block (x, y): token x, the y-th kThreads vectors of its row.
template <class G, class T, int kWidth>
__global__ void forward(const T* gate_up, T* out, int64_t width) {
  const int64_t i = (int64_t{blockIdx.y} * kThreads + threadIdx.x) * kWidth;
  if (i >= width) return;
  const T* gate = gate_up + int64_t{blockIdx.x} * 2 * width + i;
  const auto g = load<kWidth>(gate), u = load<kWidth>(gate + width);
  Vec<kWidth> result;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) result[k] = value_as<G, T>(g[k], sigmoid_as<T>(G::inner(g[k]))) * u[k];
  store(out + int64_t{blockIdx.x} * width + i, result);
}

template <class G, class T, int kWidth>
__global__ void backward(const T* gate_up, const T* dout, T* dgate_up, T* out, int64_t width) {
  const int64_t i = (int64_t{blockIdx.y} * kThreads + threadIdx.x) * kWidth;
  if (i >= width) return;
  const int64_t at = int64_t{blockIdx.x} * 2 * width + i;
  const auto g = load<kWidth>(gate_up + at), u = load<kWidth>(gate_up + at + width);
  const int64_t at_out = int64_t{blockIdx.x} * width + i;
  const auto d = load<kWidth>(dout + at_out);
  Vec<kWidth> dgate, dup, again;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) {
    const float s = sigmoid_as<T>(G::inner(g[k]));
    dgate[k] = d[k] * u[k] * G::gradient(g[k], s);
    dup[k] = d[k] * (g[k] * s);
    again[k] = value_as<G, T>(g[k], s) * u[k];
  }
  store(dgate_up + at, dgate);
  store(dgate_up + at + width, dup);
  if (out != nullptr) store(out + at_out, again);
}

// Calls body(Silu()) or body(Gelu()).
template <class Body>
void with_gate(Gate gate, const Body& body) {
  gate == Gate::kSilu ? body(Silu()) : body(Gelu());
}

dim3 grid_of(int64_t rows, int64_t width, int per_thread) {
  return {static_cast<unsigned>(rows), blocks_for(width, int64_t{kThreads} * per_thread)};
}

}  // namespace

void CudaOps::do_swiglu(Stream& stream, const SwiGlu& args) {
  const int64_t rows = args.out.dim(0), width = args.out.dim(1);
  with_act_type(args.out.dtype(), [&]<class T>(T) {
    with_gate(args.gate, [&]<class G>(G) {
      with_vec_width<T>(width, [&]<int kWidth>() {
        launch({"swiglu", grid_of(rows, width, kWidth), kThreads}, handle(stream), forward<G, T, kWidth>,
               args.gate_up.as<T>(), args.out.as<T>(), width);
      });
    });
  });
}

void CudaOps::do_swiglu_backward(Stream& stream, const SwiGluBackward& args) {
  const int64_t rows = args.dout.dim(0), width = args.dout.dim(1);
  with_act_type(args.dout.dtype(), [&]<class T>(T) {
    with_gate(args.gate, [&]<class G>(G) {
      with_vec_width<T>(width, [&]<int kWidth>() {
        launch({"swiglu_backward", grid_of(rows, width, kWidth), kThreads}, handle(stream), backward<G, T, kWidth>,
               args.gate_up.as<T>(), args.dout.as<T>(), args.dgate_up.as<T>(), args.out ? args.out.as<T>() : nullptr,
               width);
      });
    });
  });
}

}  // namespace tokamak
