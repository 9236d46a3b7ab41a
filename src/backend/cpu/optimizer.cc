// The end of a step: the decision to clip or skip, from the reduced sums, and AdamW on a flat shard in one pass over
// memory. The formulas are in backend/formulas.h.
#include <algorithm>
#include <type_traits>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/partition.h"
#include "backend/cpu/rounding.h"
#include "backend/formulas.h"

namespace tokamak {

namespace {

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

template <class Moment, bool kCopies, bool kKeepsUpdates>
void update_as(const Arrays<Moment>& to, const AdamWConstants& k, int64_t begin, int64_t end, float decay,
               float scale) {
  auto* master = to.master;
  auto* exp_avg = to.exp_avg;
  auto* exp_avg_sq = to.exp_avg_sq;
  const auto* grad = to.grad;
  auto* weights = to.weights;
  auto* updates = to.updates;
  with_rounding_words<Moment>(to.rounding, begin, end, [=](int64_t first, int64_t last, const uint32_t* words) {
#pragma omp simd
    for (int64_t i = first; i < last; ++i) {
      const float before = master[i];
      float m = to_float(exp_avg[i]), v = to_float(exp_avg_sq[i]);
      const float after = adamw_update(k, decay, before, m, v, scale * grad[i]);
      if constexpr (std::is_same_v<Moment, bf16>) {
        exp_avg[i] = round_by_low_half(m, words[i - first]);
        exp_avg_sq[i] = round_by_high_half(v, words[i - first]);
      } else {
        exp_avg[i] = m;
        exp_avg_sq[i] = v;
      }
      master[i] = after;
      if constexpr (kCopies) weights[i] = from_float<bf16>(after);  // constructing a bf16 prevents vectorisation
      if constexpr (kKeepsUpdates) updates[i] = after - before;
    }
  });
}

template <class Moment>
void update(const Arrays<Moment>& to, const AdamWConstants& k, int64_t begin, int64_t end, float decay, float scale) {
  const bool copies = to.weights != nullptr, keeps = to.updates != nullptr;
  const auto how = copies ? (keeps ? update_as<Moment, true, true> : update_as<Moment, true, false>)
                          : (keeps ? update_as<Moment, false, true> : update_as<Moment, false, false>);
  how(to, k, begin, end, decay, scale);
}

template <class Moment>
void take_step(const AdamW& args) {
  const Arrays<Moment> arrays{args.master.as<float>(),
                              args.exp_avg.as<Moment>(),
                              args.exp_avg_sq.as<Moment>(),
                              args.grad.as<float>(),
                              args.weights ? args.weights.as<bf16>() : nullptr,
                              args.updates ? args.updates.as<float>() : nullptr,
                              rounding_stream_of(args.rounding, kAdamWRounding)};
  if (args.control.as<float>()[kApply] == 0.0f) {
    if (arrays.updates != nullptr) std::fill_n(arrays.updates, args.master.count(), 0.0f);
    return;
  }
  const AdamWConstants k = constants_of(args);
  const float scale = args.control.as<float>()[kGradScale];
  parallel_blocks(args.master.count(), [&](int64_t begin, int64_t end) {
    for (int piece = 0; begin < end; begin = std::min(end, k.end[piece])) {
      piece = piece_of(k, begin, piece);
      update(arrays, k, begin, std::min(end, k.end[piece]), k.decay[piece], scale);
    }
  });
}

}  // namespace

void CpuOps::do_control_step(Stream&, const ControlStep& args) {
  decide_step(args.sums.as<double>(), UnitSquares(args), args.max_norm, args.limits, args.control.as<float>());
}

void CpuOps::do_clip_unit(Stream&, const ClipUnit& args) {
  const double squares = args.unit_sums.as<double>()[kSumSquaredGradients];
  const auto clip = static_cast<float>(unit_clip(squares, args.sums.as<double>()[kSumTargets], args.max_norm));
  if (clip == 1) return;
  auto* const x = args.x.as<float>();
  parallel_blocks(args.x.count(), [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) x[i] *= clip;
  });
}

void CpuOps::do_adamw(Stream&, const AdamW& args) {
  with_act_type(args.exp_avg.dtype(), [&]<class Moment>(Moment) { take_step<Moment>(args); });
}

}  // namespace tokamak
