// What rank 0 alone does to the checkpoint directory, with the same outcome on every rank.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/comm.h"

namespace tokamak {

// Runs `ask` on rank 0 and returns its answer on every rank. If it throws an Error, every rank throws it, as a
// SharedError. Collective.
std::string run_on_rank_zero(Comm& comm, const std::function<std::string()>& ask);

// The same for an answer of steps.
std::vector<int64_t> steps_on_rank_zero(Comm& comm, const std::function<std::vector<int64_t>()>& ask);

}  // namespace tokamak
