// For commands whose output appears whole or not at all: a signal ends them in order, and removes their output.
#pragma once

#include "train/stop_signal.h"

namespace tokamak::cli {

class Interruption {
 public:
  // Error(kStopped) if a signal has come.
  void check() const;

 private:
  StopSignal signal_;
};

}  // namespace tokamak::cli
