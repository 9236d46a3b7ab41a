// Where records go. A sink is a file of this folder and a line in make_sinks; it never ends a run that trains.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "monitor/options.h"
#include "monitor/record.h"

namespace tokamak {

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void write(const MetricRecord& record) = 0;
};

using Sinks = std::vector<std::unique_ptr<Sink>>;

// Those of a run of `total_steps` with this output_dir, for the rank that reports. Error(kConfig) where a file cannot
// be opened.
Sinks make_sinks(const MetricsOptions& options, const std::string& output_dir, int64_t total_steps);

}  // namespace tokamak
