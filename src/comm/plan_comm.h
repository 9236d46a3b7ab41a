// A group with only rank 0, which moves nothing: for plans and recorded steps of any number of ranks. An exchange of
// host values throws Error(kBug).
#pragma once

#include <memory>

#include "comm/comm.h"

namespace tokamak {

std::unique_ptr<Comm> make_plan_comm(int size, const Device& device);

}  // namespace tokamak
