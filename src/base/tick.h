// What long work calls as it gets on, every few megabytes or milliseconds, so that a watchdog can tell slow from stuck.
// From any thread; empty where nobody watches.
#pragma once

#include <functional>

namespace tokamak {

using Tick = std::function<void()>;

inline void call(const Tick& tick) {
  if (tick) tick();
}

}  // namespace tokamak
