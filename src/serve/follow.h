// Follows a run: when its directory has a newer checkpoint that verifies, the served weights become that one's.
#pragma once

#include <cstdint>
#include <functional>
#include <set>

#include "base/service_thread.h"
#include "checkpoint/store.h"
#include "serve/api.h"

namespace tokamak {

class RunFollower {
 public:
  // Puts a checkpoint's weights into the engine; called on the engine's thread.
  using Load = std::function<void(CheckpointReader& reader)>;

  // Looks every few seconds. `model`, whose engine and step change, outlives this.
  RunFollower(CheckpointStore store, ServedModel& model, Load load);

  void look();  // once; on any one thread

 private:
  CheckpointStore store_;
  ServedModel& model_;
  Load load_;
  std::set<int64_t> damaged_;  // steps, each warned of once
  Timer timer_;                // last: it uses the others
};

}  // namespace tokamak
