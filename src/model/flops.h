// Parameters and floating-point operations, counted from the config. A multiplication with its addition counts 2.
#pragma once

#include <cstdint>

#include "model/model_config.h"

namespace tokamak {

struct ModelSize {
  int64_t parameters = 0;         // N; a tied matrix counts once
  int64_t lookup_parameters = 0;  // N_embedding: weights that are only looked up; none where the head shares them
};
ModelSize model_size(const ModelConfig& config);

// FLOPs of forward and backward per token at sequence length T, without recomputation. "full" is the convention
// 6 (N - N_embedding) + 12 L (Hq D) T of PaLM (Chowdhery et al. 2022, appendix B), where the head's matrix always
// counts, shared with the embedding or not; "causal" counts half of the attention term, which is what a causal kernel
// computes.
double flops_per_token_full(const ModelConfig& config, int64_t sequence_length);
double flops_per_token_causal(const ModelConfig& config, int64_t sequence_length);

// What is computed where documents are masked: a token attends to `attended` tokens on average, itself among them,
// (L + 1) / 2 in a document of L.
struct TokenFlops {
  double weights = 0;       // 6 (N - N_embedding)
  double per_attended = 0;  // 12 L Hq D
  double done(double attended) const { return weights + per_attended * attended; }
};
TokenFlops token_flops(const ModelConfig& config);

}  // namespace tokamak
