#include "train/run_plan.h"

#include <algorithm>

#include "base/error.h"
#include "train/memory_check.h"
#include "train/run_data.h"
#include "train/sampler.h"

namespace tokamak {

namespace {

// More tokens gain no speed on any device we know, and cost memory. But fewer micro-batches gather and reduce less. So
// memory alone is the limit where ranks with GPUs share a copy and activations do not compete for the memory.
int64_t most_tokens_at_once(const Mesh& mesh, const Device& device, int64_t bytes, bool keeps_what_fits) {
  constexpr int64_t kAutoMicroBatchTokens = 8192;
  const bool exchanges = mesh.shard().size() > 1 && !device.uses_host_memory();
  return exchanges && !keeps_what_fits && bytes < INT64_MAX ? INT64_MAX : kAutoMicroBatchTokens;
}

PlannedRun plan_with(const RunConfig& config, const GlobalBatch& batch, int64_t micro_batch, const Mesh& mesh,
                     Backend& backend, PlanFor use) {
  const bool trains = use == PlanFor::kTraining;
  const SampleSizes samples = sample_sizes(config);
  const ActivationOptions& activations = config.metrics.activation_statistics;
  const EngineSizes sizes{
      .max_tokens = micro_batch * batch.length,
      .max_length = batch.length,
      .cached_sequences = samples.sequences,
      .cached_length = samples.length,
      .snapshot = trains && (config.checkpoint.async || !backend.device->uses_host_memory()),
      .statistics = trains && config.metrics.tensor_statistics > 0,
      .activations = trains && activations.interval > 0 ? activations.match : std::vector<std::string>()};
  EngineOptions options = engine_options(config, sizes);
  if (!trains) options.averages.clear();
  return {{batch, micro_batch}, config.activation_checkpoint, std::make_unique<Engine>(options, mesh, backend)};
}

PlannedRun cut_run(const RunConfig& config, const GlobalBatch& batch, const Mesh& mesh, Backend& backend, PlanFor use,
                   int64_t bytes, bool keeps_what_fits) {
  const AutoInt wanted = config.training.micro_batch_size;
  if (!wanted.is_auto()) return plan_with(config, batch, wanted.value, mesh, backend, use);
  const int64_t most = most_tokens_at_once(mesh, *backend.device, bytes, keeps_what_fits);
  for (int64_t pieces = 1;; ++pieces) {
    const int64_t micro_batch = (batch.sequences_per_rank + pieces - 1) / pieces;
    if (micro_batch > 1 && micro_batch * batch.length > most) continue;
    PlannedRun run = plan_with(config, batch, micro_batch, mesh, backend, use);
    if (micro_batch == 1 || planned_bytes(run.engine->plan(), *backend.device) <= bytes) return run;
  }
}

}  // namespace

EngineOptions engine_options(const RunConfig& config, const EngineSizes& sizes) {
  return {.model = config.model,
          .optimizer = config.optimizer,
          .averages = config.averages,
          .seed = static_cast<uint64_t>(config.run.seed),
          .precision = config.precision,
          .parallelism = config.parallelism,
          .activation_checkpoint = config.activation_checkpoint,
          .z_loss = config.training.z_loss,
          .cuda_graphs = config.runtime.cuda_graphs,
          .sizes = sizes};
}

void complete_from_data(RunConfig& config) {
  if (config.model.vocab_size != 0) return;
  try {
    const RunConfig first = config_at_step(config, 1);
    config.model.vocab_size = read_first_manifest(first).vocab_size;
    if (config.model.vocab_size == 0) {
      fail(Kind::kConfig,
           str("data.sources[0], ", first.data.sources.at(0).path, ", does not say how large its vocabulary is"),
           "name data.sources[0].tokenizer");
    }
  } catch (const Error& error) {
    fail(error.kind(), str("model.vocab_size is 0, the data set's, but ", error.what()),
         error.hint() + "; or set model.vocab_size");
  }
}

PlannedRun plan_run(const RunConfig& config, const GlobalBatch& batch, const Mesh& mesh, Backend& backend, PlanFor use,
                    int64_t bytes, int64_t available) {
  const ActivationCheckpointOptions& recompute = config.activation_checkpoint;
  const int64_t limit = std::min(bytes, available);
  const bool fills =
      recompute.mode == RecomputeMode::kSelective && recompute.kept_bytes.is_auto() && recompute.kept_layers.empty();
  if (!fills || limit == INT64_MAX) {
    return cut_run(config, batch, mesh, backend, use, bytes, fills);
  }
  RunConfig planned = config;
  planned.activation_checkpoint.kept_bytes = AutoLimit::none();
  PlannedRun run = cut_run(planned, batch, mesh, backend, use, bytes, fills);
  const Device& device = *backend.device;
  const int64_t left = fillable_bytes(limit, device.uses_host_memory()) - planned_bytes(run.engine->plan(), device);
  planned.activation_checkpoint.kept_bytes = {std::max<int64_t>(left, 0)};
  run.engine.reset();  // one engine at a time
  return plan_with(planned, batch, run.shape.micro_batch, mesh, backend, use);
}

}  // namespace tokamak
