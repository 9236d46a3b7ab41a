// The end of a step: the decision to clip or skip, from the reduced sums, and AdamW on a flat shard in one pass over
// memory. The formulas are in backend/formulas.h.
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/partition.h"
#include "backend/formulas.h"

namespace tokamak {

void CpuOps::do_control_step(Stream&, const ControlStep& args) {
  decide_step(args.sums.as<double>(), args.max_norm, args.control.as<float>());
}

void CpuOps::do_adamw(Stream&, const AdamW& args) {
  if (args.control.as<float>()[kApply] == 0.0f) return;
  const AdamWConstants k = constants_of(args);
  const float scale = args.control.as<float>()[kGradScale];
  auto* master = args.master.as<float>();
  auto* exp_avg = args.exp_avg.as<float>();
  auto* exp_avg_sq = args.exp_avg_sq.as<float>();
  const auto* grad = args.grad.as<float>();
  bf16* weights = args.weights ? args.weights.as<bf16>() : nullptr;
  const auto update = [=](int64_t begin, int64_t end, float decay) {
    if (weights != nullptr) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        const float updated = adamw_update(k, decay, master[i], exp_avg[i], exp_avg_sq[i], scale * grad[i]);
        master[i] = updated;
        weights[i] = from_float<bf16>(updated);  // constructing a bf16 in the loop prevents vectorisation
      }
    } else {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        master[i] = adamw_update(k, decay, master[i], exp_avg[i], exp_avg_sq[i], scale * grad[i]);
      }
    }
  };
  parallel_blocks(args.master.count(), [&](int64_t begin, int64_t end) {
    for (int piece = 0; begin < end; begin = std::min(end, k.end[piece])) {
      piece = piece_of(k, begin, piece);
      update(begin, std::min(end, k.end[piece]), k.decay[piece]);
    }
  });
}

}  // namespace tokamak
