// The newest values of a run in Prometheus's text format (prometheus.io/docs/instrumenting/exposition_formats), for the
// textfile collector of its node exporter: a file that is replaced whole, so that no reader sees half of it.
//   # HELP tokamak_loss_avg loss/avg
//   # TYPE tokamak_loss_avg gauge
//   tokamak_loss_avg{run="small",host="node7"} 2.31
// A value's name is that of metrics.jsonl. One of an event that has no group of its own is called by the event:
// tokamak_end_exit_code. The file stays when the run has ended; tokamak_running is 0 then, unless it was killed.
#pragma once

#include <map>

#include "monitor/sink.h"

namespace tokamak {

class PrometheusFile : public FileSink {
 public:
  // Error(kConfig) where the path's directory is not there. `host`: of rank 0.
  PrometheusFile(std::string path, const RunFacts& run, const std::string& host);
  void write(const MetricRecord& record) override;
  const std::string& path() const override { return path_; }

 private:
  void set(const std::string& name, const std::string& help, double value);
  std::string text() const;

  std::string path_;
  std::string temporary_;  // beside it; one name a process, so that no two writers share it
  std::string labels_;     // run="small",host="node7"
  struct Gauge {
    std::string help;
    double value = 0;
  };
  std::map<std::string, Gauge> gauges_;    // by name, without tokamak_
  std::map<std::string, int64_t> events_;  // by name; how often in this start
};

}  // namespace tokamak
