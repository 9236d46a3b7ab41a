// For commands whose output appears whole or not at all: a signal ends them in order, and removes their output.
#pragma once

#include <memory>

#include "comm/comm.h"
#include "train/stop_signal.h"

namespace tokamak::cli {

class Interruption {
 public:
  Interruption();

  // Error(kStopped) if a StopSignal has come.
  void check() const;

 private:
  StopSignal signal_;
  std::unique_ptr<Comm> alone_;
};

}  // namespace tokamak::cli
