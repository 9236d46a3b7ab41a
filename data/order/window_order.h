// Windows of equal length over the text. A data set of N tokens has W = (N - 1) / T windows. Window i covers tokens
// [i T, i T + T], so adjacent windows share one token, and every token except the first is a target exactly once per
// epoch. Sample j of a source is window j % W of epoch j / W, or its image under a permutation of the epoch.
#pragma once

#include "data/order/source_order.h"

namespace tokamak {

// Maps element i of an epoch of n samples to the sample in stored order: the identity, or a bijection for each epoch.
class EpochShuffle {
 public:
  // `source` is the number of the source. Sources with as many samples do not share an order.
  static EpochShuffle none() { return {}; }
  static EpochShuffle keyed(int64_t seed, int64_t source);
  static EpochShuffle blocks(int64_t seed, int64_t source, int64_t block);  // block_shuffle.h

  int64_t operator()(int64_t i, int64_t epoch, int64_t n) const;

 private:
  enum class Mode { kNone, kKeyed, kBlocks };
  Mode mode_ = Mode::kNone;
  uint64_t key_ = 0;
  int64_t block_ = 0;
};

class WindowOrder final : public SourceOrder {
 public:
  WindowOrder(int64_t tokens, int64_t length, EpochShuffle shuffle);  // N and T

  RangeKind kind() const override { return RangeKind::kText; }
  int64_t epoch() const override { return windows_; }
  void ranges(int64_t j, std::vector<TokenRange>& out) const override;

 private:
  int64_t length_;
  int64_t windows_;
  EpochShuffle shuffle_;
};

}  // namespace tokamak
