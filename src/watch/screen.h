// The terminal, in full-screen mode from construction to destruction, by ncurses. At most one object at a time.
#pragma once

#include <signal.h>

#include "watch/frame.h"

namespace tokamak {

class Screen {
 public:
  Screen();  // Error(kConfig) where ncurses does not know $TERM, or cannot move its cursor
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  int rows() const;
  int columns() const;
  void show(const Frame& frame);

  // Returns the user's key, or kNone after so many seconds. It returns 'q' after SIGINT, SIGTERM, SIGHUP or if the
  // terminal closes. After SIGTERM or SIGHUP, ~Screen() ends the process.
  static constexpr int kNone = -1;
  int wait(double seconds);

 private:
  void* terminal_;  // ncurses' SCREEN
  sigset_t signals_before_;
  int empty_reads_ = 0;  // in a row
};

}  // namespace tokamak
