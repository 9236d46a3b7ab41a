// Catch's runner, compiled once for all test programs: Catch's headers expose it only where it is compiled.
#pragma once

#include <string>

namespace tokamak {

// Runs the cases as Catch's own main does. If `skip_because` gives a reason, it lists the skipped cases and returns 77,
// which ctest counts as skipped; listing still works.
int run_catch(int argc, char** argv, const std::string& skip_because = "");

}  // namespace tokamak
