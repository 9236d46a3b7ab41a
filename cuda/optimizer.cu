// The end of a step: the decision to clip or skip, and AdamW on a flat shard in one pass over memory (30 bytes per
// element; 22 with bf16 moments). The formulas are in backend/formulas.h. AdamW reads the decision on the device.
#include "backend/formulas.h"
#include "cuda/cuda_ops.h"
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/vec.h"

namespace tokamak {
namespace {

constexpr int kThreads = 256;
constexpr int kVector = kVecWidth<float>;

__global__ void decide(const double* sums, float max_norm, float* control) { decide_step(sums, max_norm, control); }

template <class Moment>
struct Arrays {
  float* master;
  Moment* exp_avg;
  Moment* exp_avg_sq;
  const float* grad;
  bf16* weights;   // or null
  float* updates;  // or null; or grad
  RoundingStream rounding;
};

template <int kWidth>
struct Words {
  uint32_t of[kWidth];
};

// The random words of elements i ... i + kWidth - 1. If several, they are one whole Philox block (starts_at_a_block).
template <int kWidth>
__device__ Words<kWidth> draw(const RoundingStream& stream, int64_t i) {
  static_assert(kWidth == 1 || kWidth == RoundingStream::kWords);
  const uint64_t index = stream.first + static_cast<uint64_t>(i);
  const auto block = rounding_words(stream, index / RoundingStream::kWords);
  if constexpr (kWidth == 1) {
    const uint32_t lane = index % RoundingStream::kWords;  // block[lane] would put the block into memory
    return {{lane == 0 ? block[0] : lane == 1 ? block[1] : lane == 2 ? block[2] : block[3]}};
  } else {
    return {{block[0], block[1], block[2], block[3]}};
  }
}

__device__ void store_bits(bf16* to, const bf16 (&x)[1]) { *to = x[0]; }
__device__ void store_bits(bf16* to, const bf16 (&x)[4]) {
  *reinterpret_cast<uint2*>(to) =
      make_uint2(x[0].bits | uint32_t{x[1].bits} << 16, x[2].bits | uint32_t{x[3].bits} << 16);
}

template <int kWidth>
__device__ void store_moments(const Arrays<float>& to, int64_t i, const Vec<kWidth>& m, const Vec<kWidth>& v) {
  store(to.exp_avg + i, m);
  store(to.exp_avg_sq + i, v);
}
template <int kWidth>
__device__ void store_moments(const Arrays<bf16>& to, int64_t i, const Vec<kWidth>& m, const Vec<kWidth>& v) {
  const Words<kWidth> words = draw<kWidth>(to.rounding, i);
  bf16 rounded_m[kWidth], rounded_v[kWidth];
#pragma unroll
  for (int k = 0; k < kWidth; ++k) {
    rounded_m[k] = round_exp_avg(m[k], words.of[k]);
    rounded_v[k] = round_exp_avg_sq(v[k], words.of[k]);
  }
  store_bits(to.exp_avg + i, rounded_m);
  store_bits(to.exp_avg_sq + i, rounded_v);
}

template <int kWidth, class Moment>
__device__ void update(const Arrays<Moment>& to, int64_t i, const AdamWConstants& constants, float scale) {
  auto master = load<kWidth>(to.master + i), m = load<kWidth>(to.exp_avg + i), v = load<kWidth>(to.exp_avg_sq + i);
  const auto grad = load<kWidth>(to.grad + i);
  const auto before = master;
  int piece = 0;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) {
    piece = piece_of(constants, i + k, piece);  // a group may end between the elements of a thread
    master[k] = adamw_update(constants, constants.decay[piece], master[k], m[k], v[k], scale * grad[k]);
  }
  store(to.master + i, master);
  store_moments(to, i, m, v);
  if (to.weights != nullptr) store(to.weights + i, master);
  if (to.updates == nullptr) return;
  Vec<kWidth> updates;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) updates[k] = master[k] - before[k];
  store(to.updates + i, updates);
}

// A thread has kWidth elements, counted from `skew` elements before the arrays, so that addresses are multiples of 16
// bytes.
template <int kWidth, class Moment>
__global__ void take_step(Arrays<Moment> arrays, int64_t count, int64_t skew, const float* control,
                          const __grid_constant__ AdamWConstants constants) {
  const int64_t first = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kWidth - skew;
  if (control[kApply] == 0.0f) {
    if (arrays.updates == nullptr) return;
    for (int64_t i = max(first, int64_t{0}); i < min(first + kWidth, count); ++i) arrays.updates[i] = 0.0f;
    return;
  }
  const float scale = control[kGradScale];
  if (0 <= first && first + kWidth <= count) return update<kWidth>(arrays, first, constants, scale);
  for (int64_t i = max(first, int64_t{0}); i < min(first + kWidth, count); ++i) update<1>(arrays, i, constants, scale);
}

// A slice may start at any element, but at the same one in every array. Arrays of bf16 are read 8 bytes at once.
template <class Moment>
bool equally_skewed(const Arrays<Moment>& a) {
  const int64_t skew = skew_of(a.master);
  return skew_of(a.exp_avg) % kVector == skew && skew_of(a.exp_avg_sq) % kVector == skew && skew_of(a.grad) == skew &&
         (a.weights == nullptr || skew_of(a.weights) % kVector == skew) &&
         (a.updates == nullptr || skew_of(a.updates) == skew);
}

// Whether the elements of a thread are those of one Philox block. This holds for slices of units, which begin at a
// multiple of UnitLayout::kAlignment.
bool starts_at_a_block(const Arrays<float>&, int64_t) { return true; }
bool starts_at_a_block(const Arrays<bf16>& a, int64_t skew) {
  static_assert(kVector == RoundingStream::kWords);
  return (a.rounding.first + kVector - static_cast<uint64_t>(skew)) % kVector == 0;
}

template <class Moment>
void enqueue(cudaStream_t stream, const AdamW& args) {
  const Arrays<Moment> arrays{args.master.as<float>(),
                              args.exp_avg.as<Moment>(),
                              args.exp_avg_sq.as<Moment>(),
                              args.grad.as<float>(),
                              args.weights ? args.weights.as<bf16>() : nullptr,
                              args.updates ? args.updates.as<float>() : nullptr,
                              rounding_stream_of(args.rounding)};
  const int64_t count = args.master.count(), skew = skew_of(arrays.master);
  const AdamWConstants constants = constants_of(args);
  const auto* control = args.control.as<float>();
  if (count > 0 && equally_skewed(arrays) && starts_at_a_block(arrays, skew)) {
    launch({"adamw", blocks_for(skew + count, int64_t{kThreads} * kVector), kThreads}, stream,
           take_step<kVector, Moment>, arrays, count, skew, control, constants);
  } else {
    launch({"adamw", blocks_for(count, kThreads), kThreads}, stream, take_step<1, Moment>, arrays, count, int64_t{0},
           control, constants);
  }
}

}  // namespace

void CudaOps::do_control_step(Stream& stream, const ControlStep& args) {
  launch({"control_step", 1, 1}, handle(stream), decide, args.sums.as<double>(), args.max_norm,
         args.control.as<float>());
}

void CudaOps::do_adamw(Stream& stream, const AdamW& args) {
  with_act_type(args.exp_avg.dtype(), [&]<class Moment>(Moment) { enqueue<Moment>(handle(stream), args); });
}

}  // namespace tokamak
