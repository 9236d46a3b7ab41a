#include "model/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"

namespace tokamak {

int32_t sample_token(std::span<const float> logits, const SamplingOptions& options, double uniform) {
  TOKAMAK_CHECK(!logits.empty());
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto likelier = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  if (options.temperature <= 0) return *std::min_element(ids.begin(), ids.end(), likelier);

  const size_t most = options.top_k > 0 ? std::min(static_cast<size_t>(options.top_k), ids.size()) : ids.size();
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(most), ids.end(), likelier);
  ids.resize(most);
  std::vector<double> weights;
  const double best = logits[static_cast<size_t>(ids[0])];
  for (const int32_t id : ids) {
    weights.push_back(std::exp((logits[static_cast<size_t>(id)] - best) / options.temperature));
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  size_t kept = 0;
  double mass = 0;
  while (kept < weights.size() && (kept == 0 || mass < options.top_p * total)) mass += weights[kept++];

  double rest = uniform * mass;
  for (size_t i = 0; i + 1 < kept; ++i) {
    rest -= weights[i];
    if (rest < 0) return ids[i];
  }
  return ids[kept - 1];
}

}  // namespace tokamak
