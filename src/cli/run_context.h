// The frame of subcommands that compute: the world of ranks, this rank's log, and the end of all ranks after an error.
#pragma once

#include <functional>

#include "backend/backend.h"
#include "comm/world.h"

namespace tokamak::cli {

// Starts the world, configures the log and runs `body`; returns its exit code. Rank 0 reports an error that all ranks
// share, and every rank leaves in order. An error on one of several ranks ends all ranks at once; a world of one throws
// it. World gets `interrupted`.
int run_in_world(const std::function<int(World&)>& body, std::function<bool()> interrupted = {});

// For a body that uses objects from outside, whose work on the device may wait for other ranks. An error of only this
// rank ends all ranks here, before a destructor waits for that work.
void or_end_all(World& world, const std::function<void()>& body);

// The backend, on all ranks or none: SharedError if one rank cannot have it.
Backend make_backend_collectively(World& world, const RuntimeOptions& options);

}  // namespace tokamak::cli
