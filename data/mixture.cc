#include "data/mixture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace tokamak {

Mixture::Mixture(std::span<const double> weights, std::span<const std::string> names) {
  TOKAMAK_CHECK(!weights.empty() && weights.size() == names.size(), weights.size(), " weights");
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] > 0) || !std::isfinite(weights[i])) {
      fail(Kind::kConfig, str("the weight of source ", names[i], " is ", weights[i], "; it must be above zero"));
    }
    sum += weights[i];
  }
  std::vector<double> shares;
  for (const double weight : weights) shares.push_back(weight / sum);
  choose_parts(shares);
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i] == 0) {
      fail(Kind::kConfig,
           str("source ", names[i], " has a share of ", shares[i],
               " of the samples; the smallest that can be kept is 1/", kMaxPeriod),
           "raise its weight or leave the source out");
    }
  }
  schedule();
}

// The shortest period with exact shares, or else the longest one, filled by largest remainders.
void Mixture::choose_parts(std::span<const double> shares) {
  const auto exact = [&](int64_t period) {
    return std::all_of(shares.begin(), shares.end(), [&](double share) {
      const double part = share * double(period);
      return std::abs(part - std::round(part)) < 1e-9 && std::round(part) > 0;
    });
  };
  period_ = 1;
  while (period_ < kMaxPeriod && !exact(period_)) ++period_;
  std::vector<double> remainders;
  for (const double share : shares) {
    const double part = share * double(period_) + 1e-9;
    parts_.push_back(static_cast<int64_t>(part));
    remainders.push_back(part - std::floor(part));
  }
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  const int64_t missing = period_ - std::accumulate(parts_.begin(), parts_.end(), int64_t{0});
  TOKAMAK_CHECK(missing >= 0 && missing <= std::ssize(order), "period ", period_);
  for (int64_t i = 0; i < missing; ++i) ++parts_[order[i]];
}

// Sample x of a source with p of the period's R slots must lie between slots floor(x R / p) and
// ceil((x + 1) R / p) - 1. These windows imply |count - k p / R| < 1, and earliest-deadline-first meets them.
void Mixture::schedule() {
  std::vector<int64_t> taken(parts_.size(), 0);
  for (int64_t slot = 0; slot < period_; ++slot) {
    int64_t best = -1;
    int64_t best_deadline = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (taken[i] * period_ / parts_[i] > slot) continue;
      const int64_t deadline = ((taken[i] + 1) * period_ + parts_[i] - 1) / parts_[i];
      if (best < 0 || deadline < best_deadline) {
        best = static_cast<int64_t>(i);
        best_deadline = deadline;
      }
    }
    TOKAMAK_CHECK(best >= 0 && best_deadline > slot, "slot ", slot, " of ", period_);
    source_.push_back(static_cast<int32_t>(best));
    rank_.push_back(static_cast<int32_t>(taken[best]++));
  }
}

Mixture::Draw Mixture::at(int64_t k) const {
  TOKAMAK_CHECK(k >= 0, k);
  const auto slot = static_cast<size_t>(k % period_);
  const int64_t source = source_[slot];
  return {source, k / period_ * parts_[source] + rank_[slot]};
}

int64_t Mixture::count(int64_t source, int64_t samples) const {
  const auto end = source_.begin() + static_cast<std::ptrdiff_t>(samples % period_);
  const auto rest = std::count(source_.begin(), end, static_cast<int32_t>(source));
  return samples / period_ * parts_[source] + rest;
}

}  // namespace tokamak
