// Writes a checkpoint of weights alone: f32 masters without the state of an optimizer, cut into files as if ranks had
// saved them.
#pragma once

#include <string>

#include "checkpoint/manifest.h"
#include "formats/flat_slice.h"
#include "interop/weight_stream.h"
#include "tensor/param_table.h"

namespace tokamak {

// Writes the checkpoint of point.state.step into `store`, a new directory, and syncs it. Returns its manifest. `read`
// gets pieces of weights, in any order.
CheckpointManifest write_weights_checkpoint(const std::string& store, const TrainingPoint& point,
                                            const ParamTable& table, const ReadParam& read, const Progress& progress);

}  // namespace tokamak
