// The start that train, bench and plan share: the config completed by its data, the batch cut, memory planned.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/engine.h"
#include "train/batch_shape.h"
#include "train/run_config.h"

namespace tokamak {

// Fills in what the data decides: model.vocab_size where it is 0. Error(kData) if the data set cannot be read.
void complete_from_data(RunConfig& config);

// The engine's options of a run's config.
EngineOptions engine_options(const RunConfig& config, const EngineSizes& sizes);

// A run whose memory is planned and not yet taken.
struct PlannedRun {
  BatchShape shape;
  ActivationCheckpointOptions activation_checkpoint;  // as planned: with a limit, kept_bytes is no longer auto
  std::unique_ptr<Engine> engine;
};

// A plan for training has statistics of tensors, and a snapshot of the state if that needs memory of its own. A plan
// for a benchmark of the step has neither.
enum class PlanFor { kTraining, kBenchmark };

// With training.micro_batch_size: auto, a rank's share is cut into the fewest equal pieces of at most 8192 tokens whose
// plan fits into `bytes`; a piece has at least one sequence. GPUs that share a copy of the state take more than 8192
// tokens, if there is a limit of bytes and kept_bytes is not auto.
//
// With activation_checkpoint.kept_bytes: auto, the batch is cut with nothing kept. Then activations fill the rest of
// the smaller of `bytes` and `available`. Kept activations may differ from start to start, since the bits do not depend
// on them. mode: auto and keep_gathered: auto are settled before (auto_choice.h).
PlannedRun plan_run(const RunConfig& config, const GlobalBatch& batch, const Mesh& mesh, Backend& backend, PlanFor use,
                    int64_t bytes, int64_t available = INT64_MAX);

}  // namespace tokamak
