// The curves of a run, by the names of their values. A later start may train steps again: its records replace the
// earlier ones. A long curve is cut into buckets that keep their least and greatest value, so a spike of one step
// stays visible.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "monitor/record.h"

namespace tokamak {

// One record, or a bucket of records with the step, tokens and time of its last record.
struct CurvePoint {
  int64_t step = 0;
  int64_t tokens = 0;
  int64_t time = 0;  // milliseconds since 1970
  double mean = 0, low = 0, high = 0;
};

class Curves {
 public:
  using Wanted = std::function<bool(std::string_view name)>;
  explicit Curves(Wanted wanted = {}) : wanted_(std::move(wanted)) {}  // empty: all values

  void see(const MetricRecord& record);  // in the order of the file

  const std::vector<CurvePoint>& of(const std::string& name) const;  // steps ascend
  const std::vector<std::string>& names() const { return names_; }   // in the order of their first records

 private:
  Wanted wanted_;
  std::unordered_map<std::string, std::vector<CurvePoint>> points_;
  std::vector<std::string> names_;
  int64_t time_ = 0;    // of the last record
  int64_t tokens_ = 0;  // of the last record
};

// At most `most` points. Each stands for the same number of records, except the last.
std::vector<CurvePoint> downsample(const std::vector<CurvePoint>& points, int64_t most);

}  // namespace tokamak
