// The loss on held-out data: the same sequences every time, in the order they lie, shared among the ranks.
#pragma once

#include <functional>
#include <memory>

#include "data/sample_source.h"
#include "engine/engine.h"
#include "train/batch_shape.h"

namespace tokamak {

// training.validation_sequences of a run: at most all, the same for any number of ranks. auto: all where that is cheap,
// else as many as cost a fixed share of the training between two validations.
int64_t validation_sequences(const TrainingOptions& options, const GlobalBatch& batch, const SampleSource& validation);

class Evaluator {
 public:
  // `sequences` of `source`, at most as many as it has windows in all, in micro-batches of at most micro_batch. With
  // several sources, a small one may repeat.
  Evaluator(const SampleSource& source, int64_t sequences, int64_t micro_batch, bool document_masking);

  // Mean loss per token, in nats. Collective. `between` is called between micro-batches, on all ranks; it may throw
  // StopRequested.
  double mean_loss(Engine& engine, const std::function<void()>& between) const;

  static int64_t all_sequences(const SampleSource& source);
  int64_t sequences() const { return sequences_; }
  int64_t tokens() const { return sequences_ * source_.sequence_length(); }

 private:
  const SampleSource& source_;
  int64_t sequences_;
  int64_t micro_batch_;
  bool document_masking_;
};

}  // namespace tokamak
