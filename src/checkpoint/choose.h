// Chooses the checkpoint that a run starts from. If one is damaged, the next older one is used, with a warning; a run
// never starts from scratch instead. Nothing on disk is changed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/store.h"
#include "comm/comm.h"

namespace tokamak {

// Collective: rank 0 sends the manifest, each rank verifies its share of the files, and all return the same checkpoint.
// `load` is CheckpointOptions::load:
//   auto  the newest that verifies; each one skipped is a warning with directory, file and reason. nullopt if there is
//         no checkpoint; SharedError(kCheckpoint) if there are some and none can be used.
//   none  nullopt; SharedError(kCheckpoint) if there are checkpoints.
//   PATH  that step's directory; SharedError(kCheckpoint) if it is missing or damaged.
// The reader and the verification call `tick` during their work.
std::optional<CheckpointReader> choose_checkpoint(Comm& comm, const CheckpointStore& store, const std::string& load,
                                                  const Tick& tick = {});

// The newest of these steps' checkpoints that verifies; each one skipped is a warning. `steps` are the same on all
// ranks, ascending and not empty. Collective. SharedError(kCheckpoint) if none can be used.
CheckpointReader choose_of(Comm& comm, const CheckpointStore& store, const std::vector<int64_t>& steps,
                           const Tick& tick);

// Opens and verifies the checkpoint of a step that this program has committed. Collective. SharedError(kCheckpoint) if
// it cannot be read back.
CheckpointReader open_committed(Comm& comm, const CheckpointStore& store, int64_t step, const Tick& tick);

// Opens one step's directory, or the newest checkpoint that verifies in a run's or a `checkpoints` directory.
// Collective. SharedError(kCheckpoint) as choose_checkpoint, also if there is none.
CheckpointReader open_checkpoint_at(Comm& comm, const std::string& path);

}  // namespace tokamak
