// Which checkpoint a run starts from. Damage is met by the next older checkpoint, loudly, and never by a start from
// scratch. Nothing on disk is changed.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/store.h"
#include "comm/comm.h"

namespace tokamak {

// Collective; rank 0 looks and sends the others the manifest, all verify their share of the files, and all ranks
// return the same checkpoint, verified to the last byte. `load` is CheckpointOptions::load:
//   auto  the newest that verifies; each one skipped is a warning with directory, file and reason. Nothing where
//         there is no checkpoint; SharedError(kCheckpoint) where there are some and none can be used.
//   none  nothing; SharedError(kCheckpoint) where there are checkpoints.
//   PATH  that step's directory; SharedError(kCheckpoint) if it is missing or damaged.
// The reader and the verification call `tick` as they get on.
std::optional<CheckpointReader> choose_checkpoint(Comm& comm, const CheckpointStore& store, const std::string& load,
                                                  const Tick& tick = {});

// What a user names to read weights from: one step's directory, or a directory of them (or a run's), and then the newest
// that verifies. Collective, verified and failing as choose_checkpoint; also where there is none.
CheckpointReader open_checkpoint_at(Comm& comm, const std::string& path);

}  // namespace tokamak
