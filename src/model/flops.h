// Parameters and FLOPs, counted from the config. A multiply-add is 2 FLOPs.
#pragma once

#include <cstdint>

#include "model/model_config.h"

namespace tokamak {

struct ModelSize {
  int64_t parameters = 0;         // N; a tied matrix is counted once
  int64_t lookup_parameters = 0;  // N_embedding: weights that are only looked up; 0 if the head shares them
};
ModelSize model_size(const ModelConfig& config);

// FLOPs of forward and backward per token, without recomputation. The head's matrix is always counted, tied or not.
struct TokenFlops {
  double weights = 0;       // 6 (N - N_embedding)
  double per_attended = 0;  // 12 L Hq D
  // `attended`: the number of tokens that a token attends to on average, itself included. With document masking it is
  // (n + 1) / 2 in a document of n tokens.
  double done(double attended) const { return weights + per_attended * attended; }
  // PaLM's convention at sequence length T: 6 (N - N_embedding) + 12 L (Hq D) T (Chowdhery et al. 2022, appendix B).
  double full(int64_t T) const { return done(double(T)); }
  // full() with half of its attention term: a causal kernel skips the other half.
  double causal(int64_t T) const { return done(0.5 * double(T)); }
};
TokenFlops token_flops(const ModelConfig& config);

}  // namespace tokamak
