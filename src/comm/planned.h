// A group that only plans: what a plan for N ranks is made with on a machine that has one. Knows its rank and
// size; every collective is a bug.
#pragma once

#include <memory>

#include "comm/comm.h"

namespace tokamak {

std::unique_ptr<Comm> make_planned_comm(int size, const Device& device);  // seen from rank 0

}  // namespace tokamak
