// Counts the calls that may make the host wait or allocate memory. A test checks that a training step makes none. The
// process writes the counts at its end as JSON to the file TOKAMAK_EMULATOR_CALLS.
#pragma once

#include <cstdint>
#include <string>

namespace emulator {

void count_call(const char* name);

// Kernels that have run, also by the replay of a graph; for tests in the same process.
void count_kernel(const char* name);
int64_t kernels_run(const std::string& name);

}  // namespace emulator
