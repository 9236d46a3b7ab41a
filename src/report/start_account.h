// The account of one start: takes its records in order and gives each millisecond to what it was spent on. Records carry
// the seconds of what they report; time that none has claimed when the start ends is the tail of its training, or kOther.
#pragma once

#include <optional>
#include <vector>

#include "report/run_report.h"

namespace tokamak {

// Training from one step to another. Of which steps count the run decides, when all starts are known.
struct TrainedSteps {
  int64_t from = 0;  // trained are from + 1 .. to
  int64_t to = 0;
  int64_t milliseconds = 0;
};

class StartAccount {
 public:
  // `before`: the start before this one; nullptr: there is none. After one that was done nothing was down until this one.
  StartAccount(const MetricRecord& first, const StartReport* before);

  // Whether `record` is the first of a start after this one.
  bool ended_before(const MetricRecord& record) const;
  void see(const MetricRecord& record);
  void close(const FoundHang* hang, bool is_last);

  const StartReport& report() const { return report_; }
  const std::vector<TrainedSteps>& trained() const { return trained_; }
  // Of a closed one: it had nothing to train, or was refused. After a run that was done it does not change what that was.
  bool is_idle() const;

 private:
  void advance(int64_t time);
  void begin_training(int64_t step);
  int64_t claim(double seconds);  // of the time that nothing has claimed yet, in milliseconds
  void see_event(const MetricRecord& record);
  void close_with_words(bool is_last);

  StartReport report_;
  std::vector<TrainedSteps> trained_;
  int64_t unclaimed_ = 0;            // milliseconds since training began
  int64_t reached_ = 0;              // the last step that any record knows of
  std::optional<std::string> stop_;  // its reason
  std::optional<int64_t> exit_code_;
  std::string last_words_;
};

}  // namespace tokamak
