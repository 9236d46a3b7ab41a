// Counts the threads that a test program starts.
#pragma once

#include <cstdint>

namespace tokamak {

int64_t started_threads();  // since the program began, by anyone

}  // namespace tokamak
