// When checkpoints are written, how many stay, and what a start loads.
#pragma once

#include <cstdint>
#include <string>

#include "base/fields.h"

namespace tokamak {

struct CheckpointOptions {
  TrainingLength interval = TrainingLength::steps(1000);
  int64_t keep_latest = 2;
  std::string load = "auto";

  template <class Visitor>
  void fields(Visitor& v) {
    v("interval", interval, "steps (1000), tokens (1B tokens) or time (30min) between checkpoints; 0: only at the end");
    v("keep_latest", keep_latest, "verified checkpoints that stay, at least 1; 0: all");
    v("load", load,
      "auto: the newest that verifies, if there is one; none: start anew (refused where some exist); PATH of "
      "one: begin from it, and go on from the run's own once it has some");
  }
};

}  // namespace tokamak
