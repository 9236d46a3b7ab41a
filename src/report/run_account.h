// The account of a run: takes its records in order and says at any time where its time went. Which steps count is
// decided when it is asked, since a later start may go back behind them.
#pragma once

#include <vector>

#include "report/start_account.h"

namespace tokamak {

class RunAccount {
 public:
  // True where the record begins a new start. `hangs`: the known ones; a start that one of them ended was hung.
  bool see(const MetricRecord& record, const std::vector<FoundHang>& hangs = {});

  // The account so far; the last start may go on. Needs at least one record. Directory and suspects stay empty.
  RunReport report(const std::vector<FoundHang>& hangs = {}) const;

  bool empty() const { return starts_.empty(); }
  int64_t starts() const { return static_cast<int64_t>(starts_.size()); }
  const StartReport& last() const { return starts_.back().report(); }  // still open

 private:
  std::vector<StartAccount> starts_;
  struct TokensAt {
    int64_t step = 0;
    double tokens = 0;  // trained on since step 0
  };
  double tokens_after(int64_t step) const;

  std::vector<TokensAt> tokens_;  // steps ascend
  int64_t total_steps_ = 0, total_tokens_ = 0;
  double interval_ = 0;
};

}  // namespace tokamak
