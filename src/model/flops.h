// Parameters and FLOPs, counted from the config. A multiply-add counts 2.
#pragma once

#include <cstdint>

#include "model/model_config.h"

namespace tokamak {

struct ModelSize {
  int64_t parameters = 0;         // N; a tied matrix counts once
  int64_t lookup_parameters = 0;  // N_embedding: weights that are only looked up; 0 if the head shares them
};
ModelSize model_size(const ModelConfig& config);

// FLOPs of forward and backward per token at sequence length T, without recomputation. "full" is PaLM's convention
// 6 (N - N_embedding) + 12 L (Hq D) T (Chowdhery et al. 2022, appendix B). The head's matrix always counts, tied or
// not. "causal" counts half of the attention term, as a causal kernel computes.
double flops_per_token_full(const ModelConfig& config, int64_t sequence_length);
double flops_per_token_causal(const ModelConfig& config, int64_t sequence_length);

// FLOPs with document masking: a token attends to `attended` tokens on average, including itself. In a document of L
// tokens that is (L + 1) / 2.
struct TokenFlops {
  double weights = 0;       // 6 (N - N_embedding)
  double per_attended = 0;  // 12 L Hq D
  double done(double attended) const { return weights + per_attended * attended; }
};
TokenFlops token_flops(const ModelConfig& config);

}  // namespace tokamak
