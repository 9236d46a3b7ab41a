// What the subcommands that compute begin with: the world of ranks, the log of this rank, and the end of an error that
// only this rank has.
#pragma once

#include <functional>

#include "backend/backend.h"
#include "comm/world.h"

namespace tokamak::cli {

// Starts the world, marks this rank's log lines and runs `body`; returns its exit code. An error that all ranks share
// is reported by rank 0 alone and every rank leaves in order; an error of one rank ends all ranks at once.
// `interrupted`: as World's.
int run_in_world(const std::function<int(World&)>& body, std::function<bool()> interrupted = {});

// For a body whose objects live outside of it and may have work on a device that waits for other ranks: an error of
// this rank alone ends all ranks here, before a destructor waits for that work.
void or_end_all(World& world, const std::function<void()>& body);

// The backend, on all ranks or none: SharedError where one rank cannot have it.
Backend make_backend_collectively(World& world, const RuntimeOptions& options);

}  // namespace tokamak::cli
