#include "train/left_out.h"

#include <algorithm>

namespace tokamak {

LeftOutSamples::LeftOutSamples(const std::vector<LeftOut>& all, const StageRow& row) {
  std::vector<Range> found;
  for (const LeftOut& one : all) {
    if (row.contains(one.step)) found.push_back({one.first_sample, one.first_sample + one.samples});
  }
  std::sort(found.begin(), found.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (const Range& range : found) {
    if (ranges_.empty() || range.begin > ranges_.back().end) {
      ranges_.push_back(range);
    } else {
      ranges_.back().end = std::max(ranges_.back().end, range.end);
    }
  }
}

int64_t LeftOutSamples::count() const {
  int64_t samples = 0;
  for (const Range& range : ranges_) samples += range.end - range.begin;
  return samples;
}

int64_t LeftOutSamples::past(int64_t sample) const {
  for (const Range& range : ranges_) {
    if (range.begin <= sample && sample < range.end) return range.end;
  }
  return sample;
}

}  // namespace tokamak
