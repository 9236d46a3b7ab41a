// Polls a run's files; refresh() reads what was appended. Missing, truncated or replaced files are shown in the frame
// and never throw.
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

  bool refresh();  // true: there is more to read at once
  Frame frame(const Look& look) const;

 private:
  double silent_seconds() const;

  std::string directory_;
  HoldsLock holds_lock_;
  RecordTail tail_;
  RunView view_;
  std::optional<RunReport> report_;
  std::string notice_;
  std::vector<FoundHang> hangs_;
  std::optional<double> heard_;  // monotonic clock of the newest record that came after the first reading
  bool has_caught_up_ = false;
};

}  // namespace tokamak
