// The loss on held-out data: the same sequences every time, in the order they lie, shared among the ranks.
#pragma once

#include <functional>

#include "data/sample_source.h"
#include "engine/engine.h"
#include "train/batch_shape.h"
#include "train/run_config.h"

namespace tokamak {

// Returns the number of sequences of held-out data.
int64_t all_sequences(const SampleSource& source);

// training.validation_sequences of a run: at most all, the same for any number of ranks. auto: all where that is cheap,
// else as many as cost a fixed share of the training between two validations, with all averages of the weights.
int64_t validation_sequences(const RunConfig& config, const GlobalBatch& batch, const SampleSource& validation);

struct HeldOut {
  int64_t sequences = 0;    // at most all; with several sources, a small one may repeat
  int64_t micro_batch = 1;  // at most
  bool document_masking = true;
};

// Mean loss per token of `source`, in nats. Collective. `between` is called between micro-batches, on all ranks; it may
// throw StopRequested.
double mean_loss(Engine& engine, const SampleSource& source, const HeldOut& options,
                 const std::function<void()>& between);

}  // namespace tokamak
