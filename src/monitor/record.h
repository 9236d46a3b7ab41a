// A report of the run at a step: named values, or an event with values. It holds all that a sink (sink.h) writes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
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

struct NamedText {
  std::string name;  // "incarnation"
  std::string text;
};

// "start", "checkpoint", "stop", ...: README.md lists the events with their values.
struct RunEvent {
  std::string name;
  std::string detail;
  std::vector<NamedText> texts;

  std::string text(std::string_view of) const;  // "" if there is none of this name
};

// The model's continuation of a prompt (training.samples).
struct SampleText {
  std::string prompt;
  std::string text;  // after it
  bool operator==(const SampleText&) const = default;
};

// Statistics of the finite elements. Without any, rms, min and max are not finite.
struct TensorSummary {
  double rms = 0;           // root mean square
  double min = 0, max = 0;  // f32
  int64_t non_finite = 0;
  int64_t zeros = 0;
  // counts[i] elements have 2^(first + i) <= |x| < 2^(first + i + 1). The bins are the same in every record; empty ones
  // at the ends are left out.
  int first = 0;
  std::vector<int64_t> counts;

  double greatest() const { return std::max(std::abs(min), std::abs(max)); }  // magnitude
};

// The parts of a tensor's record. A weight has the first three, and parts of the optimizer's state: "exp_avg". An
// activation has the last.
namespace tensor_kinds {
inline constexpr const char* kWeights = "weights";      // after the step's update
inline constexpr const char* kGradients = "gradients";  // mean over the tokens of the step, before max_grad_norm clips
inline constexpr const char* kUpdates = "updates";      // weights after the step minus weights before it
inline constexpr const char* kActivations = "activations";
}  // namespace tensor_kinds

struct TensorRecord {
  struct Part {
    std::string kind;
    TensorSummary values;
  };
  std::string name;  // as in checkpoints: "model.layers.3.self_attn.q_proj.weight"; or "layers.3.attention"
  int64_t elements = 0;
  std::vector<Part> parts;

  const TensorSummary* find(std::string_view kind) const;  // nullptr: not measured
  const TensorSummary& at(std::string_view kind) const;    // a bug if it was not measured
  // The size of an update relative to the weights, around 1e-3 in healthy training. NaN without a weight.
  double update_ratio() const;
};

struct MetricRecord {
  int64_t step = 0;
  int64_t time = 0;  // of writing, in milliseconds since 1970; 0: not known
  std::optional<RunEvent> event;
  std::vector<NamedValue> values;          // in the order of the file
  std::vector<TensorRecord> tensors = {};  // every metrics.tensor_statistics steps, in a record of their own
  std::optional<double> eta;               // seconds to the end of the run; files leave it out
  std::vector<SampleText> samples = {};    // in the order of their prompts

  bool is(std::string_view event_name) const { return event && event->name == event_name; }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  double at(std::string_view name) const;  // a bug if there is none of this name
  double value_or(std::string_view name, double otherwise) const;

  const NamedValue* find(std::string_view name) const;  // nullptr if there is none
};

}  // namespace tokamak
