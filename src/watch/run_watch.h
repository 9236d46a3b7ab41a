// Polls a run's files and shows the run in a terminal. Missing, truncated or replaced files are shown in the frame and
// never throw.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "watch/layout.h"
#include "watch/record_tail.h"

namespace tokamak {

class RunWatch {
 public:
  // Whether a process of the run holds its lock; empty: not known from here.
  using HoldsLock = std::function<std::optional<bool>()>;

  // Error(kConfig) unless the directory is a run.output_dir.
  RunWatch(std::string directory, HoldsLock holds_lock);

  bool refresh();  // reads what was appended; true: there is more to read at once
  Frame frame(const Look& look) const { return draw_run(shown_, look); }

  // Shows the run until the user quits. `interval`: seconds between reads of the files. Throws errors as Screen() does.
  void follow_in_terminal(double interval);

 private:
  double silent_seconds() const;

  Shown shown_;
  HoldsLock holds_lock_;
  RecordTail tail_;
  std::optional<double> heard_;  // monotonic time of the newest record since has_caught_up_; empty: none came since
  bool has_caught_up_ = false;
};

}  // namespace tokamak
