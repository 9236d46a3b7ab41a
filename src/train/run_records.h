// The records of a start: in every sink, in status.json, and the last ones if another rank ends it. Rank 0 writes; on
// other ranks the methods do nothing, unless they say otherwise.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/world.h"
#include "monitor/monitor.h"
#include "monitor/run_clocks.h"
#include "monitor/run_status.h"
#include "train/last_words.h"
#include "train/run_config.h"

namespace tokamak {

class RunRecords {
 public:
  struct Setup {
    std::string program;              // its version
    std::string command;              // the command line
    std::string config_text;          // the config as config/ prints it
    std::vector<NamedText> settings;  // the same, key by key
    std::string incarnation;          // of this start; rank 0's counts
    int64_t total_steps = 0;
    StartupClock startup;  // of this start, with its phases so far
  };
  // Collective. run.output_dir is there and locked. Writes the event "start".
  RunRecords(World& world, const RunConfig& config, const Setup& setup);

  StartupClock& startup() { return startup_; }
  bool reports() const { return recorder_.reports(); }
  void event(RunEvent event, std::vector<NamedValue> values = {}) {
    recorder_.event(step_, std::move(event), std::move(values));
  }
  void flush() { recorder_.flush(); }

  // On every rank. The run is at this step; the monitor's clock starts now.
  void go_to(int64_t step, RunScale scale, std::function<int64_t()> memory_used);
  void at_step(int64_t step);
  Monitor& monitor() { return *monitor_; }  // after go_to
  TrainingClock& clock() { return monitor_->clock(); }

  // Collective: whether an earlier start has done the whole run, as status.json says.
  bool was_done();

  void running() const { write_status(RunStatus::State::kRunning, 0); }
  void end(RunStatus::State state, const std::string& detail, int code);
  // Runs `body`; an error of it ends the records as a failure.
  void or_record_end(const std::function<void()>& body);

 private:
  void write_status(RunStatus::State state, int code, const std::string& cause = "") const;

  Comm& comm_;
  const std::string output_dir_;
  const int64_t total_steps_;
  const int64_t log_interval_;
  StartupClock startup_;
  Recorder recorder_;
  const std::string incarnation_;  // rank 0's
  LastWords last_words_;
  std::optional<Monitor> monitor_;
  int64_t step_ = 0;
};

}  // namespace tokamak
