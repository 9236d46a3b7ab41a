// Counts of what may make the host wait or take memory, so that a test can see that a training step does none of it.
// They are written as JSON where the process ends, to the file that TOKAMAK_EMULATOR_CALLS names.
#pragma once

namespace emulator {

void count_call(const char* name);

}  // namespace emulator
