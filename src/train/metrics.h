// What a run reports: a line on the console and a record in metrics.jsonl every log_interval steps, validations, and
// events (start, resume, checkpoint). Rank 0 writes; the file is only ever appended to.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "backend/device.h"
#include "base/clock.h"
#include "model/flops.h"
#include "train/options.h"
#include "train/step.h"

namespace tokamak {

// What turns steps and seconds into tokens, MFU and an ETA.
struct RunScale {
  int64_t first_step = 0;  // done before this start
  int64_t total_steps = 0;
  int64_t tokens_per_step = 0;
  TokenFlops flops;             // of a token
  double sequence_length = 0;   // T
  double peak_flops = 0;        // of all ranks, per second; see peak.h for what it is
  int64_t planned_bytes = 0;    // of this rank's device memory, with what the program had before the plan
  int64_t committed_bytes = 0;  // Device::used_bytes() once the plan was committed
};

// A number that an evaluation came to.
struct NamedValue {
  std::string name;  // "acc_norm"
  double value = 0;
};

class Metrics {
 public:
  // `path`: metrics.jsonl; empty: none. `device` is asked how much memory is used when a step is logged, not at each.
  Metrics(const MetricsOptions& options, const RunScale& scale, const Device& device, const std::string& path);

  // One finished step, in order. `data_wait` is this rank's total time of waiting for data so far, in seconds.
  void step(const StepOutcome& outcome, double data_wait);
  void validation(int64_t step, double loss, double seconds);
  void evals(int64_t step, const std::vector<NamedValue>& results, double seconds);  // names: "hellaswag/acc"
  // The event "start" or "resume", with memory planned and committed.
  void start(const std::string& detail);
  // {"event": name, "step": step, "detail": detail}
  void event(const std::string& name, int64_t step, const std::string& detail);

  // Time that is not training (validation, saving) is kept out of tokens/s.
  void pause();
  void resume();

 private:
  void report(const StepOutcome& outcome, double data_wait);
  void append(const std::string& line);

  MetricsOptions options_;
  RunScale scale_;
  const Device& device_;
  std::string path_;
  std::ofstream file_;
  double run_start_ = now_seconds();       // of the first step of this start, moved on by pauses
  double interval_start_ = now_seconds();  // of the steps since the last report, likewise
  Stopwatch pause_;
  double data_wait_ = 0;  // at the last report
  double loss_sum_ = 0;   // of the steps since the last report that were applied
  int64_t loss_count_ = 0;
  double attended_ = 0;  // of the steps since the last report
  int64_t steps_ = 0;    // since the last report
  int64_t skipped_ = 0;  // steps not applied, in this start
};

}  // namespace tokamak
