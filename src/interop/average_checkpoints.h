// The mean of the weights of several checkpoints of one model, as a checkpoint of the newest one's step, config and
// position in the data. It has no optimizer's state: to train on takes checkpoint.allow_changes: [optimizer].
//
//   OUT/checkpoints/step-NNNNNNNN/    the weights, f32
//   OUT/tokenizer.model               or tokenizer.json and what belongs to it, if the newest one's run has one
#pragma once

#include <string>
#include <vector>

#include "checkpoint/reader.h"
#include "interop/weight_stream.h"

namespace tokamak {

// Writes the directory `out` atomically. It must not exist, or must be empty. Each element is summed in f64, in the
// order of `checkpoints`, and rounded once. Reads what these readers read as "master". Returns the manifest written.
// Error(kCheckpoint) naming the first difference if one holds another model: of other shapes, another function of the
// weights (RoPE, eps, ...), or another tokenizer.
CheckpointManifest average_checkpoints(std::vector<CheckpointReader> checkpoints, const std::string& out,
                                       const Progress& progress);

}  // namespace tokamak
