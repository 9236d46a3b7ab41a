// Selective recompute: which activations the layers keep for backward, as the number of layers that keep each, so that
// the FLOPs or seconds spared are the most for the bytes. Any choice gives the same bits. The choice is optimal.
#pragma once

#include <array>
#include <cstdint>

#include "model/model_config.h"
#include "model/options.h"
#include "tensor/tensor.h"

namespace tokamak {

// What a layer may keep besides its input. One operation recomputes each: for the first four one of the forward pass,
// for the others one of backward, which only stores more. Backward needs all of them, so what keeping one spares does
// not depend on the others.
enum class KeptTensor { kQkv, kAttention, kMid, kGateUp, kNorm1, kNorm2, kSwiGlu };
inline constexpr std::array kKeptTensors = {KeptTensor::kQkv,    KeptTensor::kAttention, KeptTensor::kMid,
                                            KeptTensor::kGateUp, KeptTensor::kNorm1,     KeptTensor::kNorm2,
                                            KeptTensor::kSwiGlu};
inline constexpr size_t kGemmKeptTensors = 4;  // the first, which a forward operation recomputes
const char* name_of(KeptTensor tensor);        // as in the memory plan: "qkv"

template <class T>
struct PerKeptTensor {
  std::array<T, kKeptTensors.size()> values{};
  T& operator[](KeptTensor tensor) { return values[static_cast<size_t>(tensor)]; }
  const T& operator[](KeptTensor tensor) const { return values[static_cast<size_t>(tensor)]; }
  bool operator==(const PerKeptTensor&) const = default;
};

// Layers that keep each tensor in a buffer of their own; the others share one, in which backward finds what the last
// layer wrote. So L - 1 is all. Of the last layer only norm1 and norm2 are recomputed: the final norm uses their buffer.
using KeptLayers = PerKeptTensor<int64_t>;
int64_t most_kept_layers(const ModelConfig& config);  // L - 1

struct KeepCost {
  int64_t bytes = 0;  // of one layer's tensor as committed, with its statistics
  double spared = 0;  // FLOPs of the operation that it spares, 0 without a GEMM; or seconds (plan/auto_choice.h)
};
// For `tokens` tokens in sequences of `length`; a token attends to (length + 1) / 2 on average. `rows_behind`:
// Ops::rows_behind_attention, which only the bytes depend on.
PerKeptTensor<KeepCost> keep_costs(const ModelConfig& config, int64_t tokens, int64_t length, DType compute,
                                   int64_t rows_behind = 0);

// The counts up to `most` whose bytes together are at most `bytes` and that spare most; of equal ones those of the
// fewest bytes. A knapsack, solved exactly but for rounding (1e-12 of what is spared), in milliseconds. Only where more
// than 500 partial choices are worth the same within one layer of one tensor, the choice may miss the best by that much.
KeptLayers choose_kept(const PerKeptTensor<KeepCost>& costs, int64_t most, int64_t bytes);

// Likewise with costs in FLOPs. The bytes that are left then go to tensors that spare none, for the stores that they
// spare: as many bytes of them as fit.
KeptLayers choose_kept_by_flops(const PerKeptTensor<KeepCost>& costs, int64_t most, int64_t bytes);

// What a mode keeps, with micro-batches of `tokens` tokens; kept_bytes: auto is without a limit here. mode: auto is
// settled before (train/auto_choice.h).
KeptLayers kept_layers(const ActivationCheckpointOptions& options, const ModelConfig& config, int64_t tokens,
                       int64_t length, DType compute, int64_t rows_behind = 0);

int64_t kept_bytes(const PerKeptTensor<KeepCost>& costs, const KeptLayers& kept);
double recomputed_flops(const PerKeptTensor<KeepCost>& costs, const KeptLayers& kept, int64_t most);

}  // namespace tokamak
