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

// FLOPs of forward and backward per token, without recomputation. The head's matrix always counts, tied or not.
struct TokenFlops {
  double weights = 0;       // 6 (N - N_embedding)
  double per_attended = 0;  // 12 L Hq D
  // A token attends to so many tokens on average, including itself. With document masking that is (L + 1) / 2 in a
  // document of L tokens.
  double done(double attended) const { return weights + per_attended * attended; }
  // PaLM's convention at sequence length T: 6 (N - N_embedding) + 12 L (Hq D) T (Chowdhery et al. 2022, appendix B).
  double full(int64_t T) const { return done(double(T)); }
  // Half of its attention term, as a causal kernel computes.
  double causal(int64_t T) const { return done(0.5 * double(T)); }
};
TokenFlops token_flops(const ModelConfig& config);

}  // namespace tokamak
