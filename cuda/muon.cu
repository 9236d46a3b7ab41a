// Muon's element-wise steps, each in one pass over memory: the momentum of a matrix, and the update by its
// orthogonalised direction. With f32 state and a bf16 direction they move 14 and 12 bytes per element. The formulas are
// in backend/formulas.h.
#include "backend/formulas.h"
#include "cuda/cuda_ops.h"
#include "cuda/device.h"
#include "cuda/flat.h"
#include "cuda/launch.h"
#include "cuda/vec.h"

namespace tokamak {
namespace {

template <class Momentum, class Direction>
struct MomentumArrays {
  const float* grad;
  Momentum* momentum;
  Direction* direction;
  RoundingStream rounding;
};

template <int kWidth, class Momentum, class Direction>
__global__ void update_momentum(MomentumArrays<Momentum, Direction> to, int64_t count, int64_t skew,
                                const float* control, MuonMomentumConstants constants) {
  const bool applies = control[kApply] != 0.0f;
  const float scale = control[kGradScale];
  for_own_elements<kWidth>(count, skew, [&]<int kOwn>(int64_t i) {
    if (!applies) return store(to.direction + i, Vec<kOwn>{});
    const auto grad = load<kOwn>(to.grad + i);
    auto momentum = load<kOwn>(to.momentum + i);
    Vec<kOwn> direction;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) direction[k] = muon_direction(constants, momentum[k], scale * grad[k]);
    store(to.direction + i, direction);
    store_state(to.momentum + i, momentum, draw<Momentum, kOwn>(to.rounding, i), round_by_low_half);
  });
}

template <class Direction>
struct UpdateArrays {
  const Direction* direction;
  float* master;
  bf16* weights;   // or null
  float* updates;  // or null
};

template <int kWidth, class Direction>
__global__ void update_masters(UpdateArrays<Direction> to, int64_t count, int64_t skew, const float* control,
                               MuonUpdateConstants constants) {
  const bool applies = control[kApply] != 0.0f;
  for_own_elements<kWidth>(count, skew, [&]<int kOwn>(int64_t i) {
    Vec<kOwn> updates{};
    if (applies) {
      const auto direction = load<kOwn>(to.direction + i);
      auto master = load<kOwn>(to.master + i);
#pragma unroll
      for (int k = 0; k < kOwn; ++k) {
        const float before = master[k];
        master[k] = muon_update(constants, before, direction[k]);
        updates[k] = master[k] - before;
      }
      store(to.master + i, master);
      if (to.weights != nullptr) store(to.weights + i, master);
    }
    if (to.updates != nullptr) store(to.updates + i, updates);
  });
}

template <class Momentum, class Direction>
void enqueue_momentum(cudaStream_t stream, const MuonMomentum& args) {
  const MomentumArrays<Momentum, Direction> arrays{args.grad.as<float>(), args.momentum.as<Momentum>(),
                                                   args.direction.as<Direction>(),
                                                   rounding_stream_of(args.rounding, kMuonRounding)};
  const int64_t count = args.grad.count();
  const RoundingStream* drawn = std::is_same_v<Momentum, bf16> ? &arrays.rounding : nullptr;
  const auto enqueue = [&]<int kWidth>(unsigned blocks, int64_t skew) {
    launch({"muon_momentum", blocks, kFlatThreads}, stream, update_momentum<kWidth, Momentum, Direction>, arrays, count,
           skew, args.control.as<float>(), constants_of(args));
  };
  with_flat_width(count, drawn, enqueue, arrays.grad, arrays.momentum, arrays.direction);
}

template <class Direction>
void enqueue_update(cudaStream_t stream, const MuonUpdate& args) {
  const UpdateArrays<Direction> arrays{args.direction.as<Direction>(), args.master.as<float>(),
                                       args.weights ? args.weights.as<bf16>() : nullptr,
                                       args.updates ? args.updates.as<float>() : nullptr};
  const int64_t count = args.master.count();
  const auto enqueue = [&]<int kWidth>(unsigned blocks, int64_t skew) {
    launch({"muon_update", blocks, kFlatThreads}, stream, update_masters<kWidth, Direction>, arrays, count, skew,
           args.control.as<float>(), constants_of(args));
  };
  with_flat_width(count, nullptr, enqueue, arrays.master, arrays.direction, arrays.weights, arrays.updates);
}

}  // namespace

void CudaOps::do_muon_momentum(Stream& stream, const MuonMomentum& args) {
  with_act_type(args.momentum.dtype(), [&]<class Momentum>(Momentum) {
    with_act_type(args.direction.dtype(),
                  [&]<class Direction>(Direction) { enqueue_momentum<Momentum, Direction>(handle(stream), args); });
  });
}

void CudaOps::do_muon_update(Stream& stream, const MuonUpdate& args) {
  with_act_type(args.direction.dtype(),
                [&]<class Direction>(Direction) { enqueue_update<Direction>(handle(stream), args); });
}

}  // namespace tokamak
