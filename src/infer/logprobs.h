// Log probabilities of tokens: the model's own, before temperature, penalties and truncation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tokamak {

inline constexpr double kLeastLogprob = -9999;  // for what is less, so that JSON can hold it

struct TokenLogprob {
  int32_t id = -1;
  double logprob = 0;
};

struct Logprobs {
  TokenLogprob token;
  std::vector<TokenLogprob> likeliest;  // descending; of a tie, the lower id first
};

// Returns those of `token` and of the `count` likeliest tokens below `vocab_size`. The softmax is over all logits (V).
// Equal logits have the same log probability to the last bit. Error(kNumerics) if a logit is NaN or the maximum is not
// finite.
Logprobs logprobs_of(std::span<const float> logits, int64_t vocab_size, int32_t token, int64_t count);

// The sum of e^((logit - most) / temperature).
double sum_of_exponentials(std::span<const float> logits, double most, double temperature);

}  // namespace tokamak
