// The newest values of a run in Prometheus's text format (prometheus.io/docs/instrumenting/exposition_formats), for the
// textfile collector of its node exporter. The file is replaced as a whole.
//   # HELP tokamak_loss_avg loss/avg
//   # TYPE tokamak_loss_avg gauge
//   tokamak_loss_avg{run="small",host="node7"} 2.31
// A value has its name in metrics.jsonl, after the event's if it has no group of its own: tokamak_end_exit_code. The
// file stays after the run, with tokamak_running 0 unless the run was killed.
#pragma once

#include <map>

#include "monitor/sink.h"

namespace tokamak {

class PrometheusFile : public FileSink {
 public:
  // Error(kConfig) if the path's directory does not exist. `host`: of rank 0.
  PrometheusFile(std::string path, const RunFacts& run, const std::string& host);
  void write(const MetricRecord& record) override;
  const std::string& path() const override { return path_; }

 private:
  void set(const std::string& name, const std::string& help, double value);
  std::string text() const;

  std::string path_;
  std::string temporary_;  // its name is unique to this process
  std::string labels_;     // run="small",host="node7"
  struct Gauge {
    std::string help;
    double value = 0;
  };
  std::map<std::string, Gauge> gauges_;    // by name, without tokamak_
  std::map<std::string, int64_t> events_;  // counts in this start, by name
};

}  // namespace tokamak
