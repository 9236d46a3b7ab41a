// Detects changes of weights or moments between an update and the next, where nothing may change them. A flipped bit
// there stays finite, and every later step and checkpoint would carry it on. Each part is checksummed after an update
// and again before the next; the results reach the host a step late, as a step's outcome does (step.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace tokamak {

class StateGuard {
 public:
  // Guards the state as it is now; `engine` outlives this.
  explicit StateGuard(Engine& engine);

  void before_update();
  void after_update();

  // The parts that had changed before the last update, as "exp_avg, master"; "" if none. Called once per update, when
  // the outcome of its step has arrived, which is later on the same stream.
  std::string take();

  // The parts that have changed since the last update. Waits for the device.
  std::string changed_now();

 private:
  enum Row : int64_t { kKept = 0, kSeen = 1, kNow = 2, kRows = 3 };

  Tensor sums(Row row) const { return sums_.rows(row, row + 1); }  // (1, parts, 2)
  void add_checksums(Row row);                                     // of the state when the stream gets there
  void fetch(Tensor host);
  std::string changed(Tensor host) const;

  Engine& engine_;
  std::vector<StateTensor> parts_;
  std::unique_ptr<Arena> arena_;
  // 64-bit sums (ops.h, Checksum), never reset. kKept adds the state at the start and after each update, kSeen before
  // each update: then both are equal if nothing has changed. changed_now() adds to kNow instead of kSeen.
  Tensor sums_;             // (kRows, parts, 2) i32
  Tensor of_update_, now_;  // pinned copies of sums_
  bool waits_ = false;      // take() has not been called for the last update
};

}  // namespace tokamak
