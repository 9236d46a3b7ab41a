// The choice of the next token from its logits. The processors come in the order of Hugging Face's generate():
// repetition penalty, temperature, top-k, top-p.
#pragma once

#include <cstdint>
#include <span>

namespace tokamak {

struct SamplingOptions {
  double temperature = 0.8;  // 0: always the likeliest token
  int64_t top_k = 0;         // only the k likeliest; 0: all
  double top_p = 0.95;       // only the fewest tokens whose probabilities sum to p (Holtzman et al. 2020); 1: all
  double repetition_penalty = 1.0;  // of tokens seen before (Keskar et al. 2019); 1: none
};

// Divides the logits of the ids in `seen` by the penalty where they are positive, multiplies them by it where they are
// negative; each id once, however often it was seen.                                        logits (V), in and out
void penalise_repetition(std::span<float> logits, std::span<const int32_t> seen, double penalty);

// Draws token id from softmax(logits / temperature), cut to top_k and then top_p; `uniform` in (0, 1) is the draw, the
// likeliest token having its beginning. Ties go to the lower id, at the cuts too. Error(kNumerics) where a logit is NaN
// or the greatest is not finite. (The penalty is the caller's, who knows what was seen.)                   logits (V)
int32_t sample_token(std::span<const float> logits, const SamplingOptions& options, double uniform);

}  // namespace tokamak
