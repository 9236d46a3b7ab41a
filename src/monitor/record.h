// What a run reports at a step: named values, or an event with its own. Sinks write records (sink.h); what a sink must
// know to do so is in the record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/tensor_record.h"

namespace tokamak {

struct NamedValue {
  std::string name;  // "acc_norm", "throughput/mfu_full"
  double value = 0;
  bool whole = false;  // a count, below 2^53: files write it without a decimal point
};

NamedValue count_value(std::string name, int64_t count);

struct NamedText {
  std::string name;  // "incarnation"
  std::string text;
};

// Something that happened to the run: "start", "checkpoint", "stop". README.md lists them with their values.
struct RunEvent {
  std::string name;
  std::string detail;
  std::vector<NamedText> texts;

  std::string text(std::string_view of) const;  // "" where it has none of this name
};

// What the model makes of a prompt (training.samples).
struct SampleText {
  std::string prompt;
  std::string text;  // after it
  bool operator==(const SampleText&) const = default;
};

struct MetricRecord {
  int64_t step = 0;
  int64_t time = 0;  // when it was written, in milliseconds since 1970; 0: not known
  std::optional<RunEvent> event;
  std::vector<NamedValue> values;          // in the order of the file
  std::vector<TensorRecord> tensors = {};  // every metrics.tensor_statistics steps, in a record of their own
  std::optional<double> eta;               // seconds to the end of the run, for those who watch; no file keeps it
  std::vector<SampleText> samples = {};    // in the order of their prompts

  bool is(std::string_view event_name) const { return event && event->name == event_name; }
  bool has(std::string_view name) const;
  double at(std::string_view name) const;  // a bug where it has none of this name
  double value_or(std::string_view name, double otherwise) const;
};

}  // namespace tokamak
