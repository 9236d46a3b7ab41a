// How train, bench and plan begin alike: the config completed by its data, the batch cut, memory planned.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/engine.h"
#include "train/batch_shape.h"
#include "train/run_config.h"

namespace tokamak {

// Fills in what the data decides: model.vocab_size where it is 0. Error(kData) where the data set cannot be read.
void complete_from_data(RunConfig& config);

// What the engine takes of a run's config.
EngineOptions engine_options(const RunConfig& config, const EngineSizes& sizes);

// A run whose memory is planned and not yet taken.
struct PlannedRun {
  BatchShape shape;
  ActivationCheckpointOptions activation_checkpoint;  // as planned: kept_bytes: auto is a number, if there is a limit
  std::unique_ptr<Engine> engine;
};

// What a plan is for. A training run saves checkpoints, from a snapshot of its state where that takes memory of its own,
// and takes statistics of tensors. A benchmark of its step does neither.
enum class PlanFor { kTraining, kBenchmark };

// With training.micro_batch_size: auto, the batch is cut so that the plan fits into `bytes`: of the ways to cut a rank's
// share into equal pieces, the coarsest that fits and has at most 8192 tokens; at least one sequence. GPUs that share a
// copy of the state take more than 8192 tokens, if there is a limit of bytes and kept_bytes is not auto.
//
// With activation_checkpoint.kept_bytes: auto, the batch is cut with nothing kept; then activations are kept in what the
// smaller of `bytes` and `available` leaves. That may differ from start to start, since the bits of the run do not depend
// on it. mode: auto and keep_gathered: auto are settled before (auto_choice.h).
PlannedRun plan_run(const RunConfig& config, const GlobalBatch& batch, const Mesh& mesh, Backend& backend, PlanFor use,
                    int64_t bytes, int64_t available = INT64_MAX);

}  // namespace tokamak
