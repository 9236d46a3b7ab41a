// The terminal, while a frame fills it. ncurses has it from construction to destruction, which puts back what was there.
// One at a time.
#pragma once

#include <signal.h>

#include "watch/frame.h"

namespace tokamak {

class Screen {
 public:
  Screen();  // Error(kConfig) where TERM names no terminal that ncurses knows, or one whose cursor cannot be moved
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  int rows() const;
  int columns() const;
  void show(const Frame& frame);

  enum class Key { kNone, kQuit, kLog, kCloser, kFarther, kResized };
  // Waits so many seconds for a key, no longer. SIGINT, and a terminal that is gone, are kQuit, and so are SIGTERM and
  // SIGHUP, which end the process once the screen is destroyed.
  Key wait(double seconds);

 private:
  void* terminal_;  // ncurses' SCREEN
  sigset_t signals_before_;
  int empty_reads_ = 0;  // in a row
};

}  // namespace tokamak
