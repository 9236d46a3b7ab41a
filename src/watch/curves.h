// The curves of a run's course that a terminal draws, as they grow. Steps that are trained again replace their first
// version, by History's rule (monitor/history.h); a point is some 50 bytes, so that a run of weeks fits.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "monitor/record.h"
#include "report/series.h"

namespace tokamak {

class Curves {
 public:
  void see(const MetricRecord& record);  // in the order of the file

  // Its steps ascend; empty where there is none. Of a point only step and value are set.
  const std::vector<SeriesPoint>& of(const std::string& name) const;
  const std::vector<std::string>& evaluations() const { return evaluations_; }  // names, as they came

 private:
  std::unordered_map<std::string, std::vector<SeriesPoint>> points_;
  std::vector<std::string> evaluations_;
  std::vector<SeriesPoint> none_;
};

// How the values of a chart are written.
enum class ValueUnit { kNumber, kCount, kShare, kBytes, kSeconds };

struct ChartKind {
  const char* title;
  ValueUnit unit;
  const char* name;         // of the values
  const char* second = "";  // of another curve in the same chart, and its title
  const char* second_title = "";
};

inline constexpr const char* kBitsPerByte = "validation/bits_per_byte";  // in the table of validations

// In the order in which they are drawn; evaluations follow.
inline constexpr ChartKind kChartKinds[] = {
    {"loss", ValueUnit::kNumber, "loss/avg", "validation/loss", "validation"},
    {"learning rate", ValueUnit::kNumber, "optim/lr"},
    {"gradient norm", ValueUnit::kNumber, "optim/grad_norm"},
    {"tokens/s", ValueUnit::kCount, "throughput/tokens_per_sec"},
    {"MFU (full)", ValueUnit::kShare, "throughput/mfu_full"},
    {"memory used", ValueUnit::kBytes, "memory/used"},
    {"waited for data", ValueUnit::kSeconds, "time/data"},
};

}  // namespace tokamak
