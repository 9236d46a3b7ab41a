// The samples of a row of stages that its rollbacks have left out, as disjoint ranges. A pure function of the run's
// state: training, resume and the places of later rows ask the same one.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/run_state.h"
#include "train/stages.h"

namespace tokamak {

class LeftOutSamples {
 public:
  // Ranges may overlap: a later rollback may begin before an earlier one.
  LeftOutSamples(const std::vector<LeftOut>& all, const StageRow& row);

  int64_t count() const;
  // `sample`, or if it is left out, the next one that is not.
  int64_t past(int64_t sample) const;

 private:
  struct Range {
    int64_t begin = 0, end = 0;
  };
  std::vector<Range> ranges_;  // ascending; they do not touch
};

}  // namespace tokamak
