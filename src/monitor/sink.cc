#include "monitor/sink.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "base/run_files.h"
#include "monitor/file_thread.h"
#include "monitor/jsonl.h"

namespace tokamak {

Sinks make_sinks(const MetricsOptions& options, const RunFacts& run) {
  FileSinks files;
  files.push_back(std::make_unique<JsonlFile>(run_files::at(run.output_dir, run_files::kMetrics)));
  // A start without statistics still records which earlier ones it discards.
  const std::string tensors = run.output_dir + "/tensors.jsonl";
  const bool measures = options.tensor_statistics > 0 || options.activation_statistics.interval > 0;
  if (measures || exists(tensors)) files.push_back(std::make_unique<TensorFile>(tensors));
  if (options.tensorboard) files.push_back(tensorboard_sink(run.output_dir + "/tensorboard", run));
  if (!options.prometheus.empty()) files.push_back(prometheus_sink(options.prometheus, run, host_name()));
  Sinks sinks;
  sinks.push_back(console_sink(run.total_steps));  // on this thread, in order with the log's other lines
  if (!files.empty()) sinks.push_back(std::make_unique<FileThread>(std::move(files)));
  return sinks;
}

void Recorder::write(MetricRecord record) {
  record.time = unix_milliseconds();
  for (const auto& sink : sinks_) sink->write(record);
}

void Recorder::step(int64_t step) {
  for (const auto& sink : sinks_) sink->step(step);
}

void Recorder::event(int64_t step, RunEvent event, std::vector<NamedValue> values) {
  write({.step = step, .event = std::move(event), .values = std::move(values)});
}

void Recorder::flush() {
  constexpr double kSecondsToFlush = 5;  // a disk that hangs must not stop training
  for (const auto& sink : sinks_) sink->flush(kSecondsToFlush);
}

}  // namespace tokamak
