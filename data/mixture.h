// Maps sample k to its source, as a pure function of (weights, k). Every sample has the same number of tokens, so
// shares of samples are shares of tokens. After any number k of samples, each source has contributed k times its share
// to within one sample. The schedule is a Pfair one (Baruah et al., Algorithmica 15 (1996)): earliest deadline first
// over one period, then repeated.
//
// Shares are multiples of 1 / period, for a period of at most 2^16 samples. They are exact if the weights allow it
// (1:1:1, or 0.5, 0.3, 0.2), otherwise off by less than 2^-16 of all samples.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/order/source_schedule.h"

namespace tokamak {

class Mixture final : public SourceSchedule {
 public:
  static constexpr int64_t kMaxPeriod = int64_t{1} << 16;

  // Error(kConfig), naming names[i], if a weight is not positive, not finite, or too small a share to represent.
  Mixture(std::span<const double> weights, std::span<const std::string> names);

  Draw at(int64_t k) const override;  // O(1)
  int64_t count(int64_t source, int64_t samples) const override;
  int64_t memory_bytes() const override { return period_ * int64_t{2 * sizeof(int32_t)}; }
  int64_t period() const { return period_; }
  const std::vector<int64_t>& parts() const { return parts_; }  // (sources), their sum is the period

 private:
  void choose_parts(std::span<const double> shares);
  void schedule();

  int64_t period_ = 1;
  std::vector<int64_t> parts_;
  std::vector<int32_t> source_;  // (period) source of each slot
  std::vector<int32_t> rank_;    // (period) earlier slots of the period with the same source
};

}  // namespace tokamak
