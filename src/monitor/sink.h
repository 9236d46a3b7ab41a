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
  // A step is done, which has no record of its own. At each step: as cheap as storing a number.
  virtual void step(int64_t /*step*/) {}
  // Waits until all that was written is where it belongs, but no longer than this. False: it is not.
  virtual bool flush(double /*seconds*/) { return true; }
};

using Sinks = std::vector<std::unique_ptr<Sink>>;

// A sink on a disk, which may be slow, full or gone. FileThread has them, so that none of them says what it lost.
class FileSink {
 public:
  virtual ~FileSink() = default;
  virtual bool takes(const MetricRecord& /*record*/) const { return true; }
  // What it takes. Error where the disk refuses it; the next one is tried again.
  virtual void write(const MetricRecord& record) = 0;
  virtual const std::string& path() const = 0;
};

using FileSinks = std::vector<std::unique_ptr<FileSink>>;

// The run that records are of, as sinks show it.
struct RunFacts {
  std::string name;                 // run.name
  std::string output_dir;           // is there
  std::string config_text;          // resolved
  std::vector<NamedText> settings;  // the same, key by key
  int64_t total_steps = 0;
};

// For the rank that reports. Error(kConfig) where a file cannot be opened.
Sinks make_sinks(const MetricsOptions& options, const RunFacts& run);

}  // namespace tokamak
