// What a run reports at a step: named values, or an event with its own. Sinks write records (sink.h); what a sink must
// know to do so is in the record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

struct NamedValue {
  std::string name;  // "acc_norm", "throughput/mfu_full"
  double value = 0;
  bool whole = false;  // a count, below 2^53: files write it without a decimal point
};

NamedValue count_value(std::string name, int64_t count);

// Something that happened to the run: "start", "resume", "checkpoint", "stop".
struct RunEvent {
  std::string name;
  std::string time;  // utc_timestamp()
  std::string detail;
};

struct MetricRecord {
  int64_t step = 0;
  std::optional<RunEvent> event;
  std::vector<NamedValue> values;  // in the order of the file
  std::optional<double> eta;       // seconds to the end of the run, for those who watch; no file keeps it

  bool has(std::string_view name) const;
  double at(std::string_view name) const;  // a bug where it has none of this name
};

}  // namespace tokamak
