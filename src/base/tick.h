// A function that long work calls every few megabytes or milliseconds, from any thread. So a watchdog can distinguish
// slow work from stuck work. It may be empty.
#pragma once

#include <functional>

namespace tokamak {

using Tick = std::function<void()>;

inline void call(const Tick& tick) {
  if (tick) tick();
}

}  // namespace tokamak
