// The end of a step: the decision to clip or skip, and AdamW on a flat shard in one pass over memory (30 bytes per
// element). The formulas are in backend/formulas.h. AdamW reads the decision on the device.
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

struct Arrays {
  float* master;
  float* exp_avg;
  float* exp_avg_sq;
  const float* grad;
  bf16* weights;   // or null
  float* updates;  // or null; or grad
};

template <int kWidth>
__device__ void update(const Arrays& to, int64_t i, const AdamWConstants& constants, float scale) {
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
  store(to.exp_avg + i, m);
  store(to.exp_avg_sq + i, v);
  if (to.weights != nullptr) store(to.weights + i, master);
  if (to.updates == nullptr) return;
  Vec<kWidth> updates;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) updates[k] = master[k] - before[k];
  store(to.updates + i, updates);
}

// A thread has kWidth elements, counted from `skew` elements before the arrays, so that addresses are multiples of 16
// bytes.
template <int kWidth>
__global__ void take_step(Arrays arrays, int64_t count, int64_t skew, const float* control,
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

// A slice may start at any element, but at the same one in every array.
bool equally_skewed(const Arrays& a) {
  const int64_t skew = skew_of(a.master);
  return skew_of(a.exp_avg) == skew && skew_of(a.exp_avg_sq) == skew && skew_of(a.grad) == skew &&
         (a.weights == nullptr || skew_of(a.weights) % kVector == skew) &&
         (a.updates == nullptr || skew_of(a.updates) == skew);
}

}  // namespace

void CudaOps::do_control_step(Stream& stream, const ControlStep& args) {
  launch({"control_step", 1, 1}, handle(stream), decide, args.sums.as<double>(), args.max_norm,
         args.control.as<float>());
}

void CudaOps::do_adamw(Stream& stream, const AdamW& args) {
  const Arrays arrays{args.master.as<float>(),
                      args.exp_avg.as<float>(),
                      args.exp_avg_sq.as<float>(),
                      args.grad.as<float>(),
                      args.weights ? args.weights.as<bf16>() : nullptr,
                      args.updates ? args.updates.as<float>() : nullptr};
  const int64_t count = args.master.count();
  const AdamWConstants constants = constants_of(args);
  const auto* control = args.control.as<float>();
  if (count > 0 && equally_skewed(arrays)) {
    const int64_t skew = skew_of(arrays.master);
    launch({"adamw", blocks_for(skew + count, int64_t{kThreads} * kVector), kThreads}, handle(stream),
           take_step<kVector>, arrays, count, skew, control, constants);
  } else {
    launch({"adamw", blocks_for(count, kThreads), kThreads}, handle(stream), take_step<1>, arrays, count, int64_t{0},
           control, constants);
  }
}

}  // namespace tokamak
