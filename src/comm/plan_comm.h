// A group of which only rank 0 is there, and moves nothing: for plans and records of steps on any number of ranks. What
// ranks would tell each other is a bug.
#pragma once

#include <memory>

#include "comm/comm.h"

namespace tokamak {

std::unique_ptr<Comm> make_plan_comm(int size, const Device& device);

}  // namespace tokamak
