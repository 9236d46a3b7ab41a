// The files of a run as someone who watches it needs them: each refresh reads what is new. Nothing that it finds, or no
// longer finds, ends it.
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
  // Whether a process of the run holds its lock; nothing where that cannot be told from here.
  using HoldsLock = std::function<std::optional<bool>()>;

  // Error(kConfig) where there is no such directory, or it is no run.output_dir.
  RunWatch(std::string directory, HoldsLock holds_lock);

  bool refresh();  // true: there is more to read at once
  Frame frame(const Look& look) const;

 private:
  double silent_seconds() const;

  std::string directory_;
  HoldsLock holds_lock_;
  RecordTail tail_;
  RunView view_;
  std::optional<Standing> condition_;
  std::string notice_;
  std::vector<FoundHang> hangs_;
  std::vector<std::string> log_;  // its last lines
  std::optional<double> heard_;   // by the monotonic clock, when a record has come since the first reading
  bool has_caught_up_ = false;
};

}  // namespace tokamak
