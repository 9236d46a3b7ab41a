// The reports of training: values every log_interval steps, validations, evaluations, samples and events, each a
// record. Ranks without sinks compute nothing.
#pragma once

#include "monitor/interval.h"
#include "monitor/run_clocks.h"
#include "monitor/sink.h"

namespace tokamak {

class Monitor {
 public:
  struct Setup {
    RunScale scale;
    int64_t log_interval = 1;              // steps
    std::function<int64_t()> memory_used;  // bytes of the device; called once an interval
    Recorder& recorder;                    // must outlive this
  };
  explicit Monitor(Setup setup);

  // Takes the finished steps in order. `data_wait` is this rank's total wait for data so far, in seconds.
  void step(const StepOutcome& outcome, double data_wait);
  // `of_averages`: the losses of averages of the weights, by name.
  void validation(int64_t step, double loss, std::optional<double> bits_per_byte,
                  const std::vector<NamedValue>& of_averages, double seconds);
  void evals(int64_t step, const std::vector<NamedValue>& results, double seconds);  // names: "hellaswag/acc"
  void samples(int64_t step, std::vector<SampleText> samples, double seconds);
  // `seconds` is the time that the statistics took.
  void tensors(int64_t step, std::vector<TensorRecord> tensors, double seconds);
  void event(const std::string& name, int64_t step, const std::string& detail, std::vector<NamedValue> values = {});

  TrainingClock& clock() { return clock_; }

 private:
  MetricRecord record_at(int64_t step, std::vector<NamedValue> values) const;  // with the tokens trained on by then

  TrainingClock clock_;
  Setup setup_;
  Interval interval_;
};

}  // namespace tokamak
