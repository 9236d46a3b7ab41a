// The end of a step: its verdict (clip, or skip) from the reduced sums, and AdamW on a flat shard in one pass over
// memory. Constants are formed in double, as torch.optim does, because 1 - beta2 in f32 is off in the fifth digit.
#include <cmath>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/partition.h"

namespace tokamak {
namespace {

struct AdamWConstants {
  float grad_scale;
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  float decay;           // 1 - lr weight_decay
  float step;            // lr / bias1
  float inv_sqrt_bias2;  // 1 / sqrt(bias2)
  float eps;
};

AdamWConstants constants_of(const AdamW& args) {
  const double lr = args.lr, beta1 = args.beta1, beta2 = args.beta2;
  AdamWConstants k;
  k.grad_scale = args.control.as<float>()[kGradScale];
  k.beta1 = static_cast<float>(beta1);
  k.one_minus_beta1 = static_cast<float>(1.0 - beta1);
  k.beta2 = static_cast<float>(beta2);
  k.one_minus_beta2 = static_cast<float>(1.0 - beta2);
  k.decay = static_cast<float>(1.0 - lr * args.weight_decay);
  k.step = static_cast<float>(lr / args.bias1);
  k.inv_sqrt_bias2 = static_cast<float>(1.0 / std::sqrt(static_cast<double>(args.bias2)));
  k.eps = static_cast<float>(args.eps);
  return k;
}

// One element; returns the new master weight.
inline float update(const AdamWConstants& k, float master, float& m, float& v, float grad) {
  const float g = k.grad_scale * grad;
  m = k.beta1 * m + k.one_minus_beta1 * g;
  v = k.beta2 * v + k.one_minus_beta2 * (g * g);
  return k.decay * master - k.step * m / (std::sqrt(v) * k.inv_sqrt_bias2 + k.eps);
}

}  // namespace

void CpuOps::do_control_step(Stream&, const ControlStep& args) {
  const auto* sums = args.sums.as<double>();
  auto* control = args.control.as<float>();
  const double targets = sums[kSumTargets];
  const double norm = std::sqrt(sums[kSumSquaredGradients]) / targets;
  const double clip = args.max_norm > 0 ? std::min(1.0, args.max_norm / (norm + 1e-6)) : 1.0;
  control[kGradNorm] = static_cast<float>(norm);
  control[kMeanLoss] = static_cast<float>(sums[kSumLoss] / targets);
  control[kMeanZLoss] = static_cast<float>(sums[kSumZLoss] / targets);
  const bool finite =
      std::isfinite(control[kGradNorm]) && std::isfinite(control[kMeanLoss]) && std::isfinite(control[kMeanZLoss]);
  control[kGradScale] = finite ? static_cast<float>(clip / targets) : 0.0f;
  control[kApply] = finite ? 1.0f : 0.0f;
}

void CpuOps::do_adamw(Stream&, const AdamW& args) {
  if (args.control.as<float>()[kApply] == 0.0f) return;
  const AdamWConstants k = constants_of(args);
  auto* master = args.master.as<float>();
  auto* exp_avg = args.exp_avg.as<float>();
  auto* exp_avg_sq = args.exp_avg_sq.as<float>();
  const auto* grad = args.grad.as<float>();
  bf16* weights = args.weights ? args.weights.as<bf16>() : nullptr;
  parallel_blocks(args.master.count(), [=](int64_t begin, int64_t end) {
    if (weights != nullptr) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        const float updated = update(k, master[i], exp_avg[i], exp_avg_sq[i], grad[i]);
        master[i] = updated;
        weights[i] = from_float<bf16>(updated);  // a bf16 built here would keep the loop from vectorising
      }
    } else {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) master[i] = update(k, master[i], exp_avg[i], exp_avg_sq[i], grad[i]);
    }
  });
}

}  // namespace tokamak
