// Element-wise formulas shared by the CPU operations and the CUDA kernels, so that each is written once. They are the
// rotation of RoPE, the updates of AdamW and Muon, the skip decision of a step, and bins of magnitudes. (Elementary
// functions are in base/math.h.)
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "backend/ops.h"
#include "base/bf16.h"
#include "base/host_device.h"
#include "base/rng.h"
#include "base/rng_formulas.h"

namespace tokamak {

struct RopePair {
  float a, b;
};

// (a, b) rotated by the angle with this cosine and sine.
TOKAMAK_HOST_DEVICE inline RopePair rotated(RopePair x, float cosine, float sine) {
  return {x.a * cosine - x.b * sine, x.b * cosine + x.a * sine};
}

// Computed in double, as in torch.optim: 1 - beta2 in f32 is wrong in the fifth digit.
struct AdamWConstants {
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  float step;            // lr / bias1
  float inv_sqrt_bias2;  // 1 / sqrt(bias2)
  float eps;
  int64_t end[AdamW::kMostGroups];  // of the groups
  float decay[AdamW::kMostGroups];  // per group: 1 - lr weight_decay
};

inline AdamWConstants constants_of(const AdamW& args) {
  AdamWConstants k{.beta1 = static_cast<float>(args.beta1),
                   .one_minus_beta1 = static_cast<float>(1.0 - args.beta1),
                   .beta2 = static_cast<float>(args.beta2),
                   .one_minus_beta2 = static_cast<float>(1.0 - args.beta2),
                   .step = static_cast<float>(args.lr / args.bias1),
                   .inv_sqrt_bias2 = static_cast<float>(1.0 / std::sqrt(args.bias2)),
                   .eps = static_cast<float>(args.eps),
                   .end = {},
                   .decay = {}};
  for (size_t p = 0; p < args.groups.size(); ++p) {
    k.end[p] = args.groups[p].end;
    k.decay[p] = static_cast<float>(1.0 - args.lr * args.groups[p].weight_decay);
  }
  return k;
}

// The group of element i, searched from group `from` on; it exists, because the last group ends after every element.
TOKAMAK_HOST_DEVICE inline int piece_of(const AdamWConstants& k, int64_t i, int from) {
  while (i >= k.end[from]) ++from;
  return from;
}

// Updates one element and returns its new master weight. g: gradient times kGradScale; decay: k.decay of its group.
TOKAMAK_HOST_DEVICE inline float adamw_update(const AdamWConstants& k, float decay, float master, float& m, float& v,
                                              float g) {
  m = k.beta1 * m + k.one_minus_beta1 * g;
  v = k.beta2 * v + k.one_minus_beta2 * (g * g);
  return decay * master - k.step * m / (std::sqrt(v) * k.inv_sqrt_bias2 + k.eps);
}

// Computed in double, as AdamW's.
struct MuonMomentumConstants {
  float mu, one_minus_mu;
  float of_gradient, of_momentum;  // shares of the direction
};

inline MuonMomentumConstants constants_of(const MuonMomentum& args) {
  const bool nesterov = args.nesterov == Nesterov::kYes;
  const auto mu = static_cast<float>(args.mu), one_minus_mu = static_cast<float>(1.0 - args.mu);
  return {mu, one_minus_mu, nesterov ? one_minus_mu : 0.0f, nesterov ? mu : 1.0f};
}

// Updates the momentum of one element and returns its direction. g: gradient times kGradScale.
TOKAMAK_HOST_DEVICE inline float muon_direction(const MuonMomentumConstants& k, float& m, float g) {
  m = k.mu * m + k.one_minus_mu * g;
  return k.of_gradient * g + k.of_momentum * m;
}

struct MuonUpdateConstants {
  float rate, kept;
};

inline MuonUpdateConstants constants_of(const MuonUpdate& args) {
  return {static_cast<float>(args.rate), static_cast<float>(1.0 - args.decay)};
}

// The new master weight of one element.
TOKAMAK_HOST_DEVICE inline float muon_update(const MuonUpdateConstants& k, float master, float direction) {
  return k.kept * master - k.rate * direction;
}

// Normalize multiplies x by this.
TOKAMAK_HOST_DEVICE inline float normalizing_factor(double norm, double margin) {
  return static_cast<float>(1.0 / std::max(margin * norm, 1e-7));
}

// StochasticRounding with the key of its random numbers.
struct RoundingStream {
  static constexpr int kWords = 4;  // words of a Philox block

  uint64_t first;  // index of the first element
  uint64_t step;
  std::array<uint32_t, 2> key;
};

inline constexpr const char* kAdamWRounding = "adamw";
inline constexpr const char* kMuonRounding = "muon";

inline RoundingStream rounding_stream_of(const StochasticRounding& rounding, const char* name) {
  const uint64_t key = mix64(rounding.seed ^ name_hash(name));
  return {static_cast<uint64_t>(rounding.first),
          static_cast<uint64_t>(rounding.step),
          {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)}};
}

// The words of the elements with indices 4 block ... 4 block + 3.
TOKAMAK_HOST_DEVICE inline std::array<uint32_t, RoundingStream::kWords> rounding_words(const RoundingStream& stream,
                                                                                       uint64_t block) {
  return rng_formulas::block_at(block, stream.step, stream.key);
}

// Round state by the random word of its element.
TOKAMAK_HOST_DEVICE inline bf16 round_by_low_half(float x, uint32_t word) {
  return round_at_random(x, static_cast<uint16_t>(word & 0xFFFFu));
}
TOKAMAK_HOST_DEVICE inline bf16 round_by_high_half(float x, uint32_t word) {
  return round_at_random(x, static_cast<uint16_t>(word >> 16));
}

// The factor that clips gradients of this norm; 1 if max_norm is 0.
TOKAMAK_HOST_DEVICE inline double clip_factor(double norm, float max_norm) {
  return max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}

// ClipUnit: the factor of a unit with these squared gradients.
TOKAMAK_HOST_DEVICE inline double unit_clip(double squares, double targets, float max_norm) {
  const double norm = std::sqrt(squares) / targets;
  return std::isfinite(norm) ? clip_factor(norm, max_norm) : 1.0;
}

struct UnitSquares {
  const double* sums = nullptr;  // (count, kStepSums)
  int64_t count = 0;             // 0: not clipped by units
  float max_norm = 0;

  explicit UnitSquares(const ControlStep& args) {
    if (!args.unit_sums) return;
    sums = args.unit_sums.as<double>();
    count = args.unit_sums.dim(0);
    max_norm = args.max_unit_norm;
  }
};

// ControlStep: computes control (kStepControls) from sums (kStepSums).
TOKAMAK_HOST_DEVICE inline void decide_step(const double* sums, const UnitSquares& units, float max_norm,
                                            StepLimits limits, float* control) {
  const double targets = sums[kSumTargets];
  double squares = sums[kSumSquaredGradients];
  for (int64_t u = 0; u < units.count; ++u) {
    const double of_unit = units.sums[u * kStepSums + kSumSquaredGradients];
    const double clip = unit_clip(of_unit, targets, units.max_norm);
    squares += clip * clip * of_unit;
  }
  const double norm = std::sqrt(squares) / targets;
  const double clip = clip_factor(norm, max_norm);
  control[kGradNorm] = static_cast<float>(norm);
  control[kMeanLoss] = static_cast<float>(sums[kSumLoss] / targets);
  control[kMeanZLoss] = static_cast<float>(sums[kSumZLoss] / targets);
  const bool finite =
      std::isfinite(control[kGradNorm]) && std::isfinite(control[kMeanLoss]) && std::isfinite(control[kMeanZLoss]);
  const bool applies = finite && control[kMeanLoss] <= limits.loss && control[kGradNorm] <= limits.norm;
  control[kGradScale] = applies ? static_cast<float>(clip / targets) : 0.0f;
  control[kApply] = applies ? 1.0f : 0.0f;
}

// The bin of Statistics::magnitudes that counts x; kMagnitudeBins where x is not finite.
TOKAMAK_HOST_DEVICE inline int magnitude_bin(float x) {
  constexpr int kBias = 127, kBins = static_cast<int>(kMagnitudeBins);
  const uint32_t magnitude = std::bit_cast<uint32_t>(x) & 0x7FFFFFFFu;
  const int exponent = static_cast<int>(magnitude >> 23) - kBias;  // below all bins for numbers that are subnormal
  const int bin = std::min(std::max(exponent - kLowestMagnitude + 1, 1), kBins - 1);
  return magnitude == 0 ? 0 : exponent > kBias ? kBins : bin;
}

// Statistics with a `divisor` multiply x by this.
TOKAMAK_HOST_DEVICE inline float reciprocal(const double* divisor) {
  return divisor == nullptr ? 1.0f : static_cast<float>(1.0 / *divisor);
}

}  // namespace tokamak
