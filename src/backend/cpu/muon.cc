// Muon's element-wise steps: the momentum of a matrix, and the update by its orthogonalised direction. The formulas are
// in backend/formulas.h.
#include <algorithm>
#include <type_traits>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/partition.h"
#include "backend/cpu/rounding.h"
#include "backend/formulas.h"

namespace tokamak {

namespace {

template <class Momentum, class Direction>
void update_momentum(const MuonMomentum& args) {
  const auto* grad = args.grad.as<float>();
  auto* momentum = args.momentum.as<Momentum>();
  auto* direction = args.direction.as<Direction>();
  const auto* control = args.control.as<float>();
  if (control[kApply] == 0.0f) {
    std::fill_n(direction, args.direction.count(), Direction(0.0f));
    return;
  }
  const MuonMomentumConstants k = constants_of(args);
  const RoundingStream rounding = rounding_stream_of(args.rounding, kMuonRounding);
  const float scale = control[kGradScale];
  parallel_blocks(args.grad.count(), [&](int64_t begin, int64_t end) {
    with_rounding_words<Momentum>(rounding, begin, end, [=](int64_t first, int64_t last, const uint32_t* words) {
#pragma omp simd
      for (int64_t i = first; i < last; ++i) {
        float m = to_float(momentum[i]);
        direction[i] = from_float<Direction>(muon_direction(k, m, scale * grad[i]));
        if constexpr (std::is_same_v<Momentum, bf16>) {
          momentum[i] = round_by_low_half(m, words[i - first]);
        } else {
          momentum[i] = m;
        }
      }
    });
  });
}

template <class Direction, bool kCopies, bool kKeepsUpdates>
void update_masters(const MuonUpdate& args) {
  const auto* direction = args.direction.as<Direction>();
  auto* master = args.master.as<float>();
  auto* weights = kCopies ? args.weights.as<bf16>() : nullptr;
  auto* updates = kKeepsUpdates ? args.updates.as<float>() : nullptr;
  const MuonUpdateConstants k = constants_of(args);
  parallel_blocks(args.master.count(), [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const float before = master[i];
      const float after = muon_update(k, before, to_float(direction[i]));
      master[i] = after;
      if constexpr (kCopies) weights[i] = from_float<bf16>(after);
      if constexpr (kKeepsUpdates) updates[i] = after - before;
    }
  });
}

}  // namespace

void CpuOps::do_muon_momentum(Stream&, const MuonMomentum& args) {
  with_act_type(args.momentum.dtype(), [&]<class Momentum>(Momentum) {
    with_act_type(args.direction.dtype(),
                  [&]<class Direction>(Direction) { update_momentum<Momentum, Direction>(args); });
  });
}

void CpuOps::do_muon_update(Stream&, const MuonUpdate& args) {
  const bool copies = static_cast<bool>(args.weights), keeps = static_cast<bool>(args.updates);
  if (args.control.as<float>()[kApply] == 0.0f) {
    if (keeps) std::fill_n(args.updates.as<float>(), args.updates.count(), 0.0f);
    return;
  }
  with_act_type(args.direction.dtype(), [&]<class Direction>(Direction) {
    const auto how = copies
                         ? (keeps ? update_masters<Direction, true, true> : update_masters<Direction, true, false>)
                         : (keeps ? update_masters<Direction, false, true> : update_masters<Direction, false, false>);
    how(args);
  });
}

}  // namespace tokamak
