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
#include "train/last_words.h"
#include "train/run_config.h"

namespace tokamak {

struct StartFacts {
  std::string program;              // "tokamak 0.1.0, commit 3ffeb6390c61"
  std::string command;              // as a shell would take it
  std::string config_text;          // the config as config/ prints it
  std::vector<NamedText> settings;  // the config, key by key
  StartupClock startup;             // with the phases so far
  // Filled in by OpenRun.
  std::string incarnation;  // rank 0's
  int ranks = 1;
  std::string hosts;
};

// The event "start", for readers of the records of all starts (report/). It adds the system of rank 0, and from the
// environment the job and the number of its restart. Scripts that start a run again set TOKAMAK_JOB and
// TOKAMAK_ATTEMPT; Slurm sets SLURM_JOB_ID and SLURM_RESTART_COUNT. `variable` is as std::getenv.
MetricRecord start_record(const StartFacts& facts, const std::function<const char*(const char* name)>& variable);

// Collective: "n01,n02", each host once, in the order of the ranks.
std::string all_hosts(Comm& comm);

class RunRecords {
 public:
  // Collective. run.output_dir is there and locked. Writes the event "start".
  RunRecords(World& world, const RunConfig& config, int64_t total_steps, const StartFacts& facts);

  bool reports() const { return recorder_.reports(); }
  void event(RunEvent event, std::vector<NamedValue> values = {}) {
    event_at(step(), std::move(event), std::move(values));
  }
  void event_at(int64_t step, RunEvent event, std::vector<NamedValue> values = {}) {
    recorder_.event(step, std::move(event), std::move(values));
  }
  void flush() { recorder_.flush(); }

  // Every rank calls it. The run is at this step; the monitor's clock starts now.
  void go_to(int64_t step, RunScale scale, std::function<int64_t()> memory_used);
  void at_step(int64_t step) { last_words_.at_step(step); }
  Monitor& monitor() { return *monitor_; }  // after go_to
  TrainingClock& clock() { return monitor_->clock(); }

  // Collective: whether an earlier start has done the whole run, as status.json says.
  bool was_done();

  void running() const { write_status(RunStatus::State::kRunning, 0); }
  void end(RunStatus::State state, const std::string& detail, int code);
  // Runs `body`; an error of it ends the records as a failure.
  void or_record_end(const std::function<void()>& body);

 private:
  int64_t step() const { return last_words_.step(); }
  void write_status(RunStatus::State state, int code, const std::string& cause = "") const;

  Comm& comm_;
  const StatusFile status_;
  const int64_t log_interval_;
  Recorder recorder_;
  LastWords last_words_;
  std::optional<Monitor> monitor_;
};

}  // namespace tokamak
