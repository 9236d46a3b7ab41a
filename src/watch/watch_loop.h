// Shows a run in a terminal until the user quits. Reads its files at intervals; redraws when the terminal changes.
#pragma once

#include "watch/run_watch.h"

namespace tokamak {

// `interval`: seconds between reads of the run's files. Errors as for Screen.
void watch_in_terminal(RunWatch& run, double interval);

}  // namespace tokamak
