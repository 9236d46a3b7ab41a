#include "monitor/sink.h"

#include "base/file.h"
#include "base/process.h"
#include "monitor/console.h"
#include "monitor/file_thread.h"
#include "monitor/jsonl.h"
#include "monitor/prometheus.h"
#include "monitor/tensorboard.h"

namespace tokamak {

Sinks make_sinks(const MetricsOptions& options, const RunFacts& run) {
  FileSinks files;
  files.push_back(std::make_unique<JsonlFile>(run.output_dir + "/metrics.jsonl"));
  // A start without statistics still says which of the earlier ones it leaves behind.
  const std::string tensors = run.output_dir + "/tensors.jsonl";
  if (options.tensor_statistics > 0 || exists(tensors)) files.push_back(std::make_unique<TensorFile>(tensors));
  if (options.tensorboard) {
    files.push_back(std::make_unique<TensorBoard>(run.output_dir + "/tensorboard", run));
  }
  if (!options.prometheus.empty()) {
    files.push_back(std::make_unique<PrometheusFile>(options.prometheus, run, host_name()));
  }
  Sinks sinks;
  sinks.push_back(std::make_unique<Console>(run.total_steps));  // among the log's other lines, in their order
  sinks.push_back(std::make_unique<FileThread>(std::move(files)));
  return sinks;
}

}  // namespace tokamak
