// The end of a step: the decision to clip or skip, from the reduced sums, and AdamW on a flat shard in one pass over
// memory. The formulas are in backend/formulas.h.
#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/partition.h"
#include "backend/formulas.h"

namespace tokamak {

namespace {

struct Arrays {
  float* master;
  float* exp_avg;
  float* exp_avg_sq;
  const float* grad;
  bf16* weights;   // or null
  float* updates;  // or null; or grad
};

template <bool kCopies, bool kKeepsUpdates>
void update_as(const Arrays& to, const AdamWConstants& k, int64_t begin, int64_t end, float decay, float scale) {
  auto* master = to.master;
  auto* exp_avg = to.exp_avg;
  auto* exp_avg_sq = to.exp_avg_sq;
  const auto* grad = to.grad;
  auto* weights = to.weights;
  auto* updates = to.updates;
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const float before = master[i];
    const float after = adamw_update(k, decay, before, exp_avg[i], exp_avg_sq[i], scale * grad[i]);
    master[i] = after;
    if constexpr (kCopies) weights[i] = from_float<bf16>(after);  // constructing a bf16 prevents vectorisation
    if constexpr (kKeepsUpdates) updates[i] = after - before;
  }
}

void update(const Arrays& to, const AdamWConstants& k, int64_t begin, int64_t end, float decay, float scale) {
  const bool copies = to.weights != nullptr, keeps = to.updates != nullptr;
  const auto how = copies ? (keeps ? update_as<true, true> : update_as<true, false>)
                          : (keeps ? update_as<false, true> : update_as<false, false>);
  how(to, k, begin, end, decay, scale);
}

}  // namespace

void CpuOps::do_control_step(Stream&, const ControlStep& args) {
  decide_step(args.sums.as<double>(), args.max_norm, args.control.as<float>());
}

void CpuOps::do_adamw(Stream&, const AdamW& args) {
  const Arrays arrays{args.master.as<float>(),
                      args.exp_avg.as<float>(),
                      args.exp_avg_sq.as<float>(),
                      args.grad.as<float>(),
                      args.weights ? args.weights.as<bf16>() : nullptr,
                      args.updates ? args.updates.as<float>() : nullptr};
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

}  // namespace tokamak
