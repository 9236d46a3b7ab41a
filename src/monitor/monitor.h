// What a run reports of its training: values every log_interval steps, validations, evaluations and events, each a record.
// Where nobody takes records, on all ranks but one, nothing is computed.
#pragma once

#include "monitor/interval.h"
#include "monitor/recorder.h"
#include "monitor/training_clock.h"

namespace tokamak {

class Monitor {
 public:
  struct Setup {
    RunScale scale;
    int64_t log_interval = 1;              // steps
    std::function<int64_t()> memory_used;  // bytes of the device; asked when an interval is reported, not at each step
    Recorder& recorder;                    // outlives this
  };
  explicit Monitor(Setup setup);

  // One finished step, in order. `data_wait` is this rank's total time of waiting for data so far, in seconds.
  void step(const StepOutcome& outcome, double data_wait);
  void validation(int64_t step, double loss, std::optional<double> bits_per_byte, double seconds);
  void evals(int64_t step, const std::vector<NamedValue>& results, double seconds);  // names: "hellaswag/acc"
  void samples(int64_t step, std::vector<SampleText> samples, double seconds);
  // Statistics of the step's tensors, which took so many seconds.
  void tensors(int64_t step, std::vector<TensorRecord> tensors, double seconds);
  void event(const std::string& name, int64_t step, const std::string& detail, std::vector<NamedValue> values = {});

  TrainingClock& clock() { return clock_; }

 private:
  MetricRecord record_at(int64_t step) const;  // with the tokens trained on by then

  TrainingClock clock_;
  int64_t log_interval_;
  std::function<int64_t()> memory_used_;
  Recorder& recorder_;
  Interval interval_;
  bool was_above_peak_ = false;  // in this start
};

}  // namespace tokamak
