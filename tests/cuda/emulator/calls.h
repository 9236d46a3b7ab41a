// Counts of what may make the host wait or take memory, so that a test can see that a training step does none of it.
// They are written as JSON where the process ends, to the file that TOKAMAK_EMULATOR_CALLS names.
#pragma once

#include <cstdint>
#include <string>

namespace emulator {

void count_call(const char* name);

// Kernels that have run, also by the replay of a graph; for tests in the same process.
void count_kernel(const char* name);
int64_t kernels_run(const std::string& name);

}  // namespace emulator
