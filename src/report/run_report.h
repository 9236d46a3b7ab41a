// The account of a run's wall-clock time over all of its starts, from the files in its directory. The clock runs
// from the first process to the last record; each millisecond is in exactly one entry of TimeSplit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "monitor/record.h"
#include "monitor/run_status.h"
#include "report/hang_files.h"
#include "report/time_split.h"

namespace tokamak {

enum class StartEnd {
  // Only the last start can have one of the next three, while it has recorded no end (LifeSigns).
  kStarting,
  kRunning,
  kSilent,  // running or killed, not known which
  kDone,
  kStopped,  // by a signal or a limit, after a save
  kFailed,   // with a recorded error
  kHung,     // ended by the watchdog
  kKilled,   // no end was recorded
};

inline constexpr std::array<const char*, 8> kStartEndNames = {"starting", "running", "silent", "done",
                                                              "stopped",  "failed",  "hung",   "killed"};

struct SaveTotals {
  int64_t committed = 0;
  int64_t refused = 0;
  int64_t bytes = 0;   // of the committed checkpoints
  double seconds = 0;  // of writing, most of it during training
};

// Times are milliseconds since 1970.
struct StartReport {
  int64_t exec = 0;              // the process began
  std::optional<int64_t> ready;  // the first step began
  int64_t last_sign = 0;         // its last record, or the watchdog's file
  // Milliseconds from the end of the last training to this start's first step, over starts that never trained.
  std::optional<int64_t> restart;
  TimeSplit time;  // from the end of the previous start to the end of this one; of the first start, from `exec`

  int64_t first_step = 0;  // done before this start
  int64_t last_step = 0;
  int64_t lost_steps = 0;  // trained here and again later
  int64_t slow = 0;        // milliseconds of productive time beyond 1.5 times the median pace

  StartEnd end = StartEnd::kRunning;
  std::string cause;    // "signal 15", an error's text, the headline of a hang
  std::string changed;  // config keys changed since the previous start: "KEY: OLD -> NEW" joined by "; "
  int64_t ranks = 0;    // 0: not known
  std::string hosts;
  std::string incarnation;
  std::vector<NamedValue> startup;  // seconds by phase, in their order
  SaveTotals saves;

  const char* end_name() const { return kStartEndNames.at(static_cast<size_t>(end)); }
  bool is_over() const { return end >= StartEnd::kDone; }
};

// A row of a run's stages that a start has begun.
struct StageReport {
  std::string name;
  int64_t first_step = 0;
  int64_t last_step = 0;
  int64_t sequence_length = 0;
  int64_t tokens_per_step = 0;
};

struct RunReport {
  std::string directory;
  std::vector<StartReport> starts;  // at least one
  TimeSplit time;                   // of all starts
  int64_t slow = 0;
  SaveTotals saves;
  int64_t first_step = 0;   // done before the first start
  int64_t step = 0;         // the last step that no later start discarded
  int64_t total_steps = 0;  // 0: not known
  int64_t total_tokens = 0;
  int64_t lost_steps = 0;
  int64_t tokens = 0;   // of the steps between first_step and step
  double interval = 0;  // seconds of the newest interval; 0: not known
  std::vector<std::string> suspects;
  std::vector<StageReport> stages;  // in their order; empty: the run has one

  int64_t wall_clock() const { return time.total(); }
  double ettr() const;             // effective training time ratio: productive time over wall clock
  double goodput() const;          // `tokens` per second of wall clock
  double productive_rate() const;  // `tokens` per second of productive time
};

// Signs of a last start that recorded no end. Silence alone proves nothing: a start is judged kKilled only if its lock
// is free.
struct LifeSigns {
  std::optional<RunStatus> status;
  std::optional<bool> holds_lock;  // read before the records; empty: not known from here
  double silent = 0;               // seconds since the newest record; 0: no record at all
};

// Sets `end` and `cause` of a start whose records leave it kStarting or kRunning; does nothing to others. `interval`:
// seconds of its newest interval.
void judge(StartReport& start, double interval, const LifeSigns& signs);

// Error(kConfig) unless the directory is a run.output_dir. A start makes checkpoints/ before all else.
void expect_run(const std::string& directory);

// Reads a run.output_dir. `holds_lock` as in LifeSigns; `see` gets each record of metrics.jsonl, in order.
// Error(kConfig) where the directory is no run's, Error(kData) where it has no records.
RunReport read_report(const std::string& directory, std::optional<bool> holds_lock = {},
                      const std::function<void(const MetricRecord&)>& see = {});

}  // namespace tokamak
