#include "infer/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/math.h"
#include "infer/logprobs.h"

namespace tokamak {

namespace {

constexpr size_t kSortedFirst = 64;  // how many candidates are sorted first; usually enough for top_p

// The most likely token; ties go to the lowest id.
int32_t likeliest(std::span<const float> logits) {
  size_t best = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) fail(Kind::kNumerics, str("the logit of token ", i, " is not a number"));
    if (logits[i] > logits[best]) best = i;
  }
  if (!std::isfinite(logits[best])) fail(Kind::kNumerics, str("the logit of token ", best, " is ", logits[best]));
  return static_cast<int32_t>(best);
}

// Token ids by descending logit, sorted lazily.
class Ranking {
 public:
  explicit Ranking(std::span<const float> logits) : logits_(logits), ids_(logits.size()) {
    std::iota(ids_.begin(), ids_.end(), 0);
  }
  int32_t operator[](size_t rank) {
    while (rank >= sorted_) {
      const size_t more = std::min(ids_.size(), std::max(kSortedFirst, 4 * sorted_));
      const auto at = [&](size_t i) { return ids_.begin() + static_cast<std::ptrdiff_t>(i); };
      const auto likelier = [&](int32_t a, int32_t b) {
        const float x = logits_[a], y = logits_[b];
        return x != y ? x > y : a < b;
      };
      if (sorted_ == 0) {
        std::partial_sort(at(0), at(more), ids_.end(), likelier);  // a heap: the fastest way to a few of many
      } else {
        std::nth_element(at(sorted_), at(more), ids_.end(), likelier);
        std::sort(at(sorted_), at(more), likelier);
      }
      sorted_ = more;
    }
    return ids_[rank];
  }

 private:
  std::span<const float> logits_;
  std::vector<int32_t> ids_;
  size_t sorted_ = 0;
};

}  // namespace

void penalise_repetition(std::span<float> logits, std::span<const int32_t> seen, double penalty) {
  if (penalty == 1.0) return;
  std::vector<bool> done(logits.size(), false);
  for (const int32_t id : seen) {
    const auto i = static_cast<size_t>(id);
    if (id < 0 || i >= logits.size() || done[i]) continue;
    done[i] = true;
    logits[i] = static_cast<float>(logits[i] > 0 ? logits[i] / penalty : logits[i] * penalty);
  }
}

int32_t sample_token(std::span<const float> logits, const SamplingOptions& options, double uniform) {
  TOKAMAK_CHECK(!logits.empty());
  const int32_t first = likeliest(logits);
  if (options.temperature <= 0) return first;
  const double best = logits[first];
  const auto weight = [&](size_t id) { return exp_f32(static_cast<float>((logits[id] - best) / options.temperature)); };

  Ranking ranking(logits);
  const size_t most = options.top_k > 0 ? std::min(static_cast<size_t>(options.top_k), logits.size()) : logits.size();
  double total = 0;
  if (most == logits.size()) {
    total = sum_of_exponentials(logits, best, options.temperature);
  } else {
    for (size_t i = 0; i < most; ++i) total += weight(static_cast<size_t>(ranking[i]));
  }

  // The number of candidates that top_p keeps: the first `kept` reach its mass, or all are kept.
  size_t kept = most;
  double mass = total;
  if (options.top_p < 1) {
    kept = 0;
    mass = 0;
    while (kept < most && (kept == 0 || mass < options.top_p * total)) {
      mass += weight(static_cast<size_t>(ranking[kept++]));
    }
  }
  double rest = uniform * mass;
  for (size_t i = 0; i + 1 < kept; ++i) {
    rest -= weight(static_cast<size_t>(ranking[i]));
    if (rest < 0) return ranking[i];
  }
  return ranking[kept - 1];
}

}  // namespace tokamak
