// How a global batch is cut: G sequences a step over the R ranks of the mesh's data axis, each in micro-batches of B.
#pragma once

#include <cstdint>

#include "train/stages.h"

namespace tokamak {

struct GlobalBatch {
  int64_t length = 0;              // T
  int64_t sequences_per_step = 0;  // G
  int64_t sequences_per_rank = 0;  // G / R
  int64_t total_steps = 0;

  int64_t tokens_per_step() const { return sequences_per_step * length; }
  int data_ranks() const { return static_cast<int>(sequences_per_step / sequences_per_rank); }  // R
};

struct BatchShape : GlobalBatch {
  int64_t micro_batch = 1;  // B, at most G / R; a step's last micro-batch may be smaller

  int64_t micro_batches() const { return (sequences_per_rank + micro_batch - 1) / micro_batch; }
};

// The batch of a run on `ranks` ranks. Decides the data axis: `readers` consecutive ranks read the same samples.
// Error(kConfig) if batch or ranks do not divide evenly, or training.micro_batch_size exceeds a rank's share.
GlobalBatch make_global_batch(const RunConfig& config, int ranks, int readers = 1);
// That of a row of a run's stages, whose name is in its errors.
GlobalBatch make_row_batch(const RunConfig& run, const StageRow& row, int ranks);

}  // namespace tokamak
