// Options: the interval of checkpoints, how many stay, and the one that a start loads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"

namespace tokamak {

struct CheckpointOptions {
  TrainingLength interval = TrainingLength::steps(1000);
  int64_t keep_latest = 2;
  std::string load = "auto";
  bool async = true;
  std::vector<std::string> allow_changes;

  template <class Visitor>
  void fields(Visitor& v) {
    v("interval", interval,
      "steps (1000), tokens (1B tokens) or time (30min) between checkpoints; a crash loses at most this much work, "
      "each save stalls training; 0: only at the end");
    v("keep_latest", keep_latest,
      "newest checkpoints to keep, each as large as the saved state; older ones survive damage to the newest; 0: all");
    v("load", load,
      "auto: the newest checkpoint that verifies, if any; none: step 0, refused where checkpoints exist; PATH: that "
      "checkpoint, later the run's own");
    v("async", async,
      "write checkpoints in the background, from a copy of the state in host memory; false: no copy, and training "
      "waits for the disk");
    v("allow_changes", allow_changes,
      "keys of model, or data.document_masking, that may differ from the checkpoint's: the loss jumps; optimizer: "
      "another one starts from zero");
  }
};

}  // namespace tokamak
