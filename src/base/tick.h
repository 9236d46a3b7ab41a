// Called during long work, every few megabytes or milliseconds, so that a watchdog can distinguish slow from stuck.
// From any thread; may be empty.
#pragma once

#include <functional>

namespace tokamak {

using Tick = std::function<void()>;

inline void call(const Tick& tick) {
  if (tick) tick();
}

}  // namespace tokamak
