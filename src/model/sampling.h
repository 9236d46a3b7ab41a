// The choice of the next token from its logits.
#pragma once

#include <cstdint>
#include <span>

namespace tokamak {

struct SamplingOptions {
  double temperature = 0.8;  // 0: always the likeliest token
  int64_t top_k = 0;         // only the k likeliest; 0: all
  double top_p = 0.95;       // only the fewest tokens whose probabilities sum to p (Holtzman et al. 2020); 1: all
};

// Draws token id from softmax(logits / temperature), cut to top_k and then top_p; `uniform` in (0, 1) is the draw.
// Ties go to the lower id.                                                     logits (V)
int32_t sample_token(std::span<const float> logits, const SamplingOptions& options, double uniform);

}  // namespace tokamak
