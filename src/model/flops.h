// Parameters and FLOPs, counted from the config. A multiply-add is 2 FLOPs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/layer_table.h"
#include "model/model_config.h"

namespace tokamak {

struct ModelSize {
  int64_t parameters = 0;         // N; a tied matrix is counted once
  int64_t lookup_parameters = 0;  // N_embedding: weights that are only looked up; 0 if the head shares them
};
ModelSize model_size(const ModelConfig& config);

// How many tokens a token attends to, itself included, on average over tokens and layers. Layers count by the FLOPs of
// their attention.
class Attended {
 public:
  explicit Attended(const LayerTable& layers);

  double in_documents(std::span<const int32_t> cu_seqlens) const;  // that attention does not cross
  double in_sequences(int64_t T) const;                            // of one document each
  // PaLM's convention for sequences of T: all T tokens, or a sliding layer's window (Chowdhery et al. 2022, app. B).
  double full(double T) const;
  // full() without the half of the pairs that a causal kernel skips: T / 2, or window - window^2 / (2 T).
  double causal(double T) const;
  double flops_per_pair() const { return flops_per_pair_; }  // of forward, in all layers together

 private:
  template <class Count>
  double mean(const Count& count) const;  // of count(window) over the layers

  std::vector<AttentionFlops> layers_;
  double flops_per_pair_ = 0;
};

// FLOPs of forward and backward per token, without recomputation. The head's matrix is always counted, tied or not.
struct TokenFlops {
  double weights = 0;       // 6 (N - N_embedding)
  double per_attended = 0;  // 12 L Hq D
  Attended attended;

  // FLOPs of a token that attends to so many tokens, on average over the layers.
  double done(double tokens) const { return weights + per_attended * tokens; }
  // PaLM's convention: 6 (N - N_embedding) + 12 L (Hq D) T without windows.
  double full(double T) const { return done(attended.full(T)); }
  double causal(double T) const { return done(attended.causal(T)); }
};
TokenFlops token_flops(const ModelConfig& config);

}  // namespace tokamak
