// Samples the next token from its logits. Processors run in the order of Hugging Face's generate(): repetition penalty,
// temperature, top-k, top-p.
#pragma once

#include <cstdint>
#include <span>

namespace tokamak {

struct SamplingOptions {
  double temperature = 0.8;  // 0: greedy
  int64_t top_k = 0;         // keep only the k most likely; 0: all
  double top_p = 0.95;       // nucleus: the fewest tokens whose probabilities sum to p (Holtzman et al. 2020); 1: all
  double repetition_penalty = 1.0;  // for tokens seen before (Keskar et al. 2019); 1: none
};

// Divides positive logits of the ids in `seen` by the penalty and multiplies negative ones by it. Repeated ids count
// once.                                                                                      logits (V), in and out
void penalise_repetition(std::span<float> logits, std::span<const int32_t> seen, double penalty);

// Samples a token id from softmax(logits / temperature), truncated to top_k and then top_p, by inverse transform:
// `uniform` in (0, 1) is the draw, and ids are ordered by descending probability. Ties go to the lower id, also at the
// cuts. Error(kNumerics) if a logit is NaN or the maximum is not finite. The caller applies the repetition penalty.
//                                                                                                        logits (V)
int32_t sample_token(std::span<const float> logits, const SamplingOptions& options, double uniform);

}  // namespace tokamak
