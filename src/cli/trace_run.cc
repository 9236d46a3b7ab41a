#include "cli/trace_run.h"

#include "base/file.h"
#include "checkpoint/reader.h"
#include "config/load.h"
#include "data/prepare/text_sources.h"
#include "train/run_table.h"

namespace tokamak::cli {

RunConfig load_trace_run(const std::string& path, const std::vector<std::string>& overrides,
                         const TraceOptions& trace) {
  if (!exists(trace.checkpoint + "/" + kManifestName)) {
    fail(Kind::kCheckpoint, str("--checkpoint: ", trace.checkpoint, " is no checkpoint: it has no ", kManifestName),
         "give the directory of one step, for example runs/mine/checkpoints/step-00001000");
  }
  const int64_t saved = CheckpointReader::open_manifest(trace.checkpoint).manifest().point.state.step;
  if (trace.step <= saved) {
    fail(Kind::kConfig, str("--trace-step ", trace.step, " does not follow ", trace.checkpoint, ", of step ", saved),
         "give an older checkpoint");
  }
  RunConfig config = load_config(path, overrides);
  if (const int64_t total = RunTable(config).total_steps(); trace.step > total) {
    fail(Kind::kConfig, str("--trace-step ", trace.step, " is beyond the run's ", total, " steps"), "give one of them");
  }
  config.data.cache = text_cache(config.data, config.run.output_dir);
  config.run.output_dir += str("-trace-", trace.step);
  config.checkpoint.load = trace.checkpoint;
  config.checkpoint.interval = TrainingLength::none();
  SpikeAction& spikes = config.resilience.spike.action;
  if (spikes == SpikeAction::kRollback) spikes = SpikeAction::kLog;  // it would not reach the step
  config.training.validation_interval = 0;
  config.training.evals.clear();
  config.training.samples.prompts.clear();
  config.averages.clear();
  return config;
}

}  // namespace tokamak::cli
