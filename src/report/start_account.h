// The account of one start. Each record adds the time since the previous one as unclaimed and claims the seconds that
// it reports. Time still unclaimed at the end is the tail of training or kOther, so the split adds up to the wall
// clock.
#pragma once

#include <optional>
#include <vector>

#include "report/run_report.h"

namespace tokamak {

// Training from one step to another. RunAccount decides which of the steps are productive.
struct TrainedSteps {
  int64_t from = 0;  // the steps are from + 1 .. to
  int64_t to = 0;
  int64_t milliseconds = 0;
};

class StartAccount {
 public:
  // `before`: the previous start, or nullptr. The time after a start that was done is not down time.
  StartAccount(const MetricRecord& first, const StartReport* before);

  // Whether `record` begins the next start.
  bool ended_before(const MetricRecord& record) const;
  void see(const MetricRecord& record);
  void close(const FoundHang* hang, bool is_last);

  const StartReport& report() const { return report_; }
  const std::vector<TrainedSteps>& trained() const { return trained_; }
  // A closed start that had nothing to train, or was refused.
  bool is_idle() const;

 private:
  void advance(int64_t time);
  void begin_training(int64_t step);
  int64_t claim(double seconds);  // returns milliseconds, at most the unclaimed ones
  void see_event(const MetricRecord& record);
  void close_by_records(bool is_last);

  StartReport report_;
  std::vector<TrainedSteps> trained_;
  int64_t unclaimed_ = 0;            // milliseconds, since training began
  int64_t reached_ = 0;              // the last step in any record
  std::optional<std::string> stop_;  // the reason
  std::optional<int64_t> exit_code_;
  std::string end_detail_;
};

}  // namespace tokamak
