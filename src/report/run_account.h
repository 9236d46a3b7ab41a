// The account of a run: takes its records in order, as they come, and knows at any time where its time went. Which steps
// count is decided when it is asked, since a later start may go back behind them.
#pragma once

#include <vector>

#include "report/start_account.h"

namespace tokamak {

class RunAccount {
 public:
  // `hangs`: as far as they are known; a start that one of them ended was hung.
  void see(const MetricRecord& record, const std::vector<FoundHang>& hangs = {});

  // As it stands; the last start may be going on. Not of a run without records. Its directory and suspects are left out.
  RunReport report(const std::vector<FoundHang>& hangs = {}) const;

  bool empty() const { return starts_.empty(); }

 private:
  std::vector<StartAccount> starts_;  // the last one is open
  int64_t total_steps_ = 0;
  double tokens_per_step_ = 0;
};

}  // namespace tokamak
