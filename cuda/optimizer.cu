// The end of a step: the decision to clip or skip, and AdamW on a flat shard in one pass over memory (30 bytes per
// element; 22 with bf16 moments). The formulas are in backend/formulas.h. AdamW reads the decision on the device.
#include "backend/formulas.h"
#include "cuda/cuda_ops.h"
#include "cuda/device.h"
#include "cuda/flat.h"
#include "cuda/launch.h"
#include "cuda/vec.h"

namespace tokamak {
namespace {

__global__ void decide(const double* sums, UnitSquares units, float max_norm, StepLimits limits, float* control) {
  decide_step(sums, units, max_norm, limits, control);
}

// Threads stride over the array.
__global__ void scale_unit(float* x, int64_t count, const double* unit_sums, const double* sums, float max_norm) {
  const auto clip = static_cast<float>(unit_clip(unit_sums[kSumSquaredGradients], sums[kSumTargets], max_norm));
  if (clip == 1) return;
  for (int64_t i = int64_t{blockIdx.x} * kFlatThreads + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * kFlatThreads) {
    x[i] *= clip;
  }
}

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
  const auto words = draw<Moment, kWidth>(to.rounding, i);
  store_state(to.exp_avg + i, m, words, round_by_low_half);
  store_state(to.exp_avg_sq + i, v, words, round_by_high_half);
  if (to.weights != nullptr) store(to.weights + i, master);
  if (to.updates == nullptr) return;
  Vec<kWidth> updates;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) updates[k] = master[k] - before[k];
  store(to.updates + i, updates);
}

template <int kWidth, class Moment>
__global__ void take_step(Arrays<Moment> arrays, int64_t count, int64_t skew, const float* control,
                          const __grid_constant__ AdamWConstants constants) {
  const bool applies = control[kApply] != 0.0f;
  const float scale = control[kGradScale];
  if (!applies && arrays.updates == nullptr) return;
  for_own_elements<kWidth>(count, skew, [&]<int kOwn>(int64_t i) {
    if (applies) {
      update<kOwn>(arrays, i, constants, scale);
    } else {
      store(arrays.updates + i, Vec<kOwn>{});
    }
  });
}

template <class Moment>
void enqueue(cudaStream_t stream, const AdamW& args) {
  const Arrays<Moment> arrays{args.master.as<float>(),
                              args.exp_avg.as<Moment>(),
                              args.exp_avg_sq.as<Moment>(),
                              args.grad.as<float>(),
                              args.weights ? args.weights.as<bf16>() : nullptr,
                              args.updates ? args.updates.as<float>() : nullptr,
                              rounding_stream_of(args.rounding, kAdamWRounding)};
  const int64_t count = args.master.count();
  const RoundingStream* drawn = std::is_same_v<Moment, bf16> ? &arrays.rounding : nullptr;
  const AdamWConstants constants = constants_of(args);
  const auto enqueue = [&]<int kWidth>(unsigned blocks, int64_t skew) {
    launch({"adamw", blocks, kFlatThreads}, stream, take_step<kWidth, Moment>, arrays, count, skew,
           args.control.as<float>(), constants);
  };
  with_flat_width(count, drawn, enqueue, arrays.master, arrays.exp_avg, arrays.exp_avg_sq, arrays.grad, arrays.weights,
                  arrays.updates);
}

}  // namespace

void CudaOps::do_control_step(Stream& stream, const ControlStep& args) {
  launch({"control_step", 1, 1}, handle(stream), decide, args.sums.as<double>(), UnitSquares(args), args.max_norm,
         args.limits, args.control.as<float>());
}

void CudaOps::do_clip_unit(Stream& stream, const ClipUnit& args) {
  constexpr int64_t kMostBlocks = 4096;  // several waves on any current GPU
  const int64_t count = args.x.count();
  launch({"clip_unit", blocks_for(std::min(count, kMostBlocks * kFlatThreads), kFlatThreads), kFlatThreads},
         handle(stream), scale_unit, args.x.as<float>(), count, args.unit_sums.as<double>(), args.sums.as<double>(),
         args.max_norm);
}

void CudaOps::do_adamw(Stream& stream, const AdamW& args) {
  with_act_type(args.exp_avg.dtype(), [&]<class Moment>(Moment) { enqueue<Moment>(handle(stream), args); });
}

}  // namespace tokamak
