#include "data/order/megatron_blend.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace tokamak {

MegatronBlend::MegatronBlend(std::span<const double> weights, int64_t samples) : taken_(weights.size(), 0) {
  if (std::ssize(weights) > kMostSources || samples > int64_t{std::numeric_limits<uint32_t>::max()}) {
    fail(Kind::kConfig, str("order megatron of ", weights.size(), " sources and ", samples, " samples; it can have ",
                            kMostSources, " and ", std::numeric_limits<uint32_t>::max()));
  }
  TOKAMAK_CHECK(samples > 0 && !weights.empty(), samples, " samples of ", weights.size());
  source_.reserve(samples);
  index_.reserve(samples);
  for (int64_t k = 0; k < samples; ++k) {
    const double drawn = std::max(double(k), 1.0);
    size_t best = 0;
    double most = weights[0] * drawn - double(taken_[0]);
    for (size_t i = 1; i < weights.size(); ++i) {
      const double behind = weights[i] * drawn - double(taken_[i]);
      if (behind > most) {
        most = behind;
        best = i;
      }
    }
    source_.push_back(static_cast<uint16_t>(best));
    index_.push_back(static_cast<uint32_t>(taken_[best]++));
  }
}

SourceSchedule::Draw MegatronBlend::at(int64_t k) const {
  const int64_t sample = k % std::ssize(source_);
  return {source_[sample], index_[sample]};
}

int64_t MegatronBlend::count(int64_t source, int64_t samples) const {
  const int64_t whole = samples / std::ssize(source_) * taken_[source];
  // The last sample of the source says how many came before it.
  for (int64_t k = samples % std::ssize(source_) - 1; k >= 0; --k) {
    if (source_[k] == source) return whole + index_[k] + 1;
  }
  return whole;
}

}  // namespace tokamak
