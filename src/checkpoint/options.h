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
    v("interval", interval,
      "steps (1000), tokens (1B tokens) or time (30min) between checkpoints; a crash loses at most this much work, "
      "and each save stalls training for its duration; 0: only at the end");
    v("keep_latest", keep_latest,
      "newest checkpoints to keep; damaged ones do not count. Each takes 12 bytes a parameter on disk, and older "
      "ones survive damage to the newest; 0: all");
    v("load", load,
      "auto: the newest checkpoint that verifies, if there is one; none: start from step 0, refused where "
      "checkpoints exist; PATH: start from that checkpoint, then resume from the run's own");
  }
};

}  // namespace tokamak
