// Where the wall-clock time of a run went, over all of its starts, from nothing but what the run left in its directory.
// The clock runs from the first process to the last sign of life; every millisecond of it is in one TimeSplit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "monitor/record.h"
#include "report/hang_files.h"
#include "report/time_split.h"

namespace tokamak {

enum class StartEnd {
  // Of the last start alone, without a word so far (life_signs.h):
  kStarting,
  kRunning,
  kSilent,  // it runs, or was killed
  kDone,
  kStopped,  // on a signal or at a limit, saved
  kFailed,   // an error that it could still record
  kHung,     // the watchdog ended it
  kKilled,   // without a word
};

inline constexpr std::array<const char*, 8> kStartEndNames = {"starting", "running", "silent", "done",
                                                              "stopped",  "failed",  "hung",   "killed"};

struct SaveTotals {
  int64_t committed = 0;
  int64_t refused = 0;
  int64_t bytes = 0;   // of those committed
  double seconds = 0;  // of writing them, beside training or not
};

// Times are milliseconds since 1970.
struct StartReport {
  int64_t exec = 0;              // the process began
  std::optional<int64_t> ready;  // the first step began; none: it ended before
  int64_t last_sign = 0;         // its last record, or the watchdog's file
  // Milliseconds from the last sign of life of training, over starts that never trained, to the first step of this one.
  std::optional<int64_t> restart;
  TimeSplit time;  // since the last sign of the start before; of the first, since exec

  int64_t first_step = 0;  // done before it
  int64_t last_step = 0;   // the last one known of
  int64_t lost_steps = 0;  // of those between, trained again later
  int64_t slow = 0;        // milliseconds of productive time that intervals took beyond 1.5 times the median pace

  StartEnd end = StartEnd::kRunning;
  std::string cause;    // "signal 15", an error's text, the headline of a hang
  std::string changed;  // keys of the config since the start before: "KEY: OLD -> NEW" joined by "; "
  int64_t ranks = 0;    // 0: not known
  std::string hosts;
  std::string incarnation;
  std::vector<NamedValue> startup;  // seconds by phase, in their order
  SaveTotals saves;
};

struct RunReport {
  std::string directory;
  std::vector<StartReport> starts;  // at least one
  TimeSplit time;                   // of all starts
  int64_t slow = 0;
  SaveTotals saves;
  int64_t first_step = 0;   // done before the first start
  int64_t step = 0;         // that the run's course has reached
  int64_t total_steps = 0;  // 0: not known
  int64_t lost_steps = 0;
  int64_t tokens = 0;  // of the steps between
  std::vector<std::string> suspects;

  int64_t wall_clock() const { return time.total(); }
  double ettr() const;             // productive time over wall clock: effective training time ratio
  double goodput() const;          // tokens of the run's course per second of wall clock
  double productive_rate() const;  // the same per second of productive time
};

// Out of the records in the order of the file, and the hang files. Error(kData) where there are no records.
RunReport make_report(const std::string& directory, const std::vector<MetricRecord>& records,
                      const std::vector<FoundHang>& hangs);

// Error(kConfig) where the directory is not there, or is no run.output_dir: a start makes checkpoints/ before all else.
void expect_run(const std::string& directory);

// Of a run.output_dir, in the order of its metrics.jsonl. Error(kConfig) where it is none. Statistics of
// tensors, which are long, are not among them: `see`, if given, is called with each record as it is in that file, then with
// those of tensors.jsonl.
std::vector<MetricRecord> read_run_records(const std::string& directory,
                                           const std::function<void(const MetricRecord&)>& see = {});
// Of these records and of what else the directory has; `holds_lock` as in life_signs.h. Error(kData) where there are no
// records.
RunReport report_of(const std::string& directory, const std::vector<MetricRecord>& records,
                    std::optional<bool> holds_lock = {});

// Both together.
RunReport read_report(const std::string& directory, std::optional<bool> holds_lock = {});

}  // namespace tokamak
