// The account of a run: takes its records in order and says at any time where its time went. report() decides which
// steps are productive and which are lost, since a later start may train steps again.
#pragma once

#include <vector>

#include "report/start_account.h"

namespace tokamak {

class RunAccount {
 public:
  // Returns whether the record begins a new start. `hangs`: all known hangs. A start that one ended is StartEnd::kHung.
  bool see(const MetricRecord& record, const std::vector<FoundHang>& hangs = {});

  // The account so far; the last start may still run. Needs at least one record. Directory and suspects stay empty.
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

  void see_stage(const MetricRecord& record);

  std::vector<TokensAt> tokens_;  // steps ascend
  std::vector<StageReport> stages_;
  int64_t total_steps_ = 0, total_tokens_ = 0;
  double interval_ = 0;
};

}  // namespace tokamak
