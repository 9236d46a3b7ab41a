// The World of a test program that runs on several ranks.
#pragma once

#include "dist/world.h"

namespace tokamak {

World*& test_world_slot();
inline World& test_world() { return *test_world_slot(); }

}  // namespace tokamak
