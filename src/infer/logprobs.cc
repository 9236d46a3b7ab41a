#include "infer/logprobs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/math.h"

namespace tokamak {

// Partial sums let the loop be SIMD code.
double sum_of_exponentials(std::span<const float> logits, double most, double temperature) {
  constexpr size_t kLanes = 16;
  double sums[kLanes] = {};
  const auto term = [&](size_t i) { return double(exp_f32(static_cast<float>((logits[i] - most) / temperature))); };
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += term(i + lane);
  }
  for (; i < logits.size(); ++i) sums[0] += term(i);
  return std::accumulate(sums, sums + kLanes, 0.0);
}

Logprobs logprobs_of(std::span<const float> logits, int64_t vocab_size, int32_t token, int64_t count) {
  TOKAMAK_CHECK(0 <= token && token < vocab_size && vocab_size <= std::ssize(logits), token, ", ", vocab_size);
  const float most = *std::max_element(logits.begin(), logits.end());
  const double log_sum = double(most) + std::log(sum_of_exponentials(logits, most, 1));
  if (!std::isfinite(log_sum)) fail(Kind::kNumerics, str("the logarithm of the logits' exponentials is ", log_sum));
  const auto score_of = [&](int32_t id) {
    return TokenLogprob{id, std::max(double(logits[static_cast<size_t>(id)]) - log_sum, kLeastLogprob)};
  };

  std::vector<int32_t> best;
  const auto is_likelier = [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  };
  for (int32_t id = 0; count > 0 && id < vocab_size; ++id) {
    if (std::ssize(best) == count && !is_likelier(id, best.back())) continue;
    best.insert(std::upper_bound(best.begin(), best.end(), id, is_likelier), id);
    if (std::ssize(best) > count) best.pop_back();
  }
  Logprobs logprobs{score_of(token), {}};
  for (const int32_t id : best) logprobs.likeliest.push_back(score_of(id));
  return logprobs;
}

}  // namespace tokamak
