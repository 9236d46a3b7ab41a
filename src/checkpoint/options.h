// When checkpoints are written, how many stay, and what a start loads.
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
      "and each save stalls training, for the copy of the state with async; 0: only at the end");
    v("keep_latest", keep_latest,
      "newest checkpoints to keep, without damaged ones; 0: all. More survive damage to the newest; each takes disk for "
      "the weights in f32 and the optimizer's state");
    v("load", load,
      "auto: the newest checkpoint that verifies, if there is one; none: start from step 0, refused where "
      "checkpoints exist; PATH: start from that checkpoint, then resume from the run's own");
    v("async", async,
      "write checkpoints beside training, from a copy of the state in host memory (as large as one, shared by the "
      "ranks); a save that is due while the last one is being written waits for it; false: training waits for the disk");
    v("allow_changes", allow_changes,
      "keys of model, or data.document_masking, that may differ from those of the checkpoint that a run goes on from, "
      "such as [model.rope_theta]; the weights are of another function then, and the loss jumps; others are refused");
  }
};

}  // namespace tokamak
