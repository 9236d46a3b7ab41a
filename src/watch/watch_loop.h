// A run in a terminal until the user has seen enough: refreshed now and then, drawn anew when the terminal changes.
#pragma once

#include "watch/run_watch.h"

namespace tokamak {

// `interval`: seconds between readings of the run's files. Error(kConfig) as of Screen.
void watch_in_terminal(RunWatch& run, double interval);

}  // namespace tokamak
