// Destinations of records. Each sink has a file in this folder and a line in make_sinks. Its errors never end training.
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
  // A step without a record is done. Called at each step, so it must be as cheap as storing a number.
  virtual void step(int64_t /*step*/) {}
  // Waits until every record is written, at most `seconds`. Returns whether it is.
  virtual bool flush(double /*seconds*/) { return true; }
};

using Sinks = std::vector<std::unique_ptr<Sink>>;

// A sink on a disk, which may be slow, full or gone. FileThread counts its losses and logs them.
class FileSink {
 public:
  virtual ~FileSink() = default;
  virtual bool takes(const MetricRecord& /*record*/) const { return true; }
  // Gets the records for which takes() is true. Error if the disk refuses one; the next one is tried again.
  virtual void write(const MetricRecord& record) = 0;
  virtual const std::string& path() const = 0;
};

using FileSinks = std::vector<std::unique_ptr<FileSink>>;

// The facts about a run that sinks show.
struct RunFacts {
  std::string name;                 // run.name
  std::string output_dir;           // exists
  std::string config_text;          // resolved
  std::vector<NamedText> settings;  // the resolved config, key by key
  int64_t total_steps = 0;
};

// Records as lines of the log; on a terminal a line beneath them shows progress (live_line.h).
std::unique_ptr<Sink> console_sink(int64_t total_steps);
// The newest values for the node exporter. Error(kConfig) if the path's directory does not exist. `host`: of rank 0.
std::unique_ptr<FileSink> prometheus_sink(const std::string& path, const RunFacts& run, const std::string& host);
// For TensorBoard, in this directory. Error(kConfig) if it cannot be created.
std::unique_ptr<FileSink> tensorboard_sink(const std::string& directory, const RunFacts& run);

// For the rank that reports. Error(kConfig) if a file cannot be opened.
Sinks make_sinks(const MetricsOptions& options, const RunFacts& run);

// Stamps the records of a run with the time and hands each to every sink. Only the rank that reports has sinks.
class Recorder {
 public:
  explicit Recorder(Sinks sinks) : sinks_(std::move(sinks)) {}

  bool reports() const { return !sinks_.empty(); }
  void write(MetricRecord record);
  void step(int64_t step);  // of a step without a record
  void event(int64_t step, RunEvent event, std::vector<NamedValue> values = {});
  // Brings all records into their files, unless a disk takes longer than some seconds. Call it before anything that
  // must not be newer than the records: a checkpoint, the end of the process.
  void flush();

 private:
  Sinks sinks_;
};

}  // namespace tokamak
