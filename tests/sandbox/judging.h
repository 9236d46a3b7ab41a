// A sandbox for the cases of this program, and what must be true after each of its verdicts.
#pragma once

#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <ostream>
#include <string>
#include <thread>

#include "base/strings.h"
#include "sandbox/sandbox.h"

namespace tokamak {

using Outcome = ProgramVerdict::Outcome;

inline std::ostream& operator<<(std::ostream& out, Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return out << "passed";
    case Outcome::kFailed:
      return out << "failed";
    case Outcome::kTimedOut:
      return out << "timed out";
    case Outcome::kOutOfMemory:
      return out << "out of memory";
  }
  return out << "no outcome";
}

// Programs that end by themselves get more time than the slowest machine needs.
constexpr double kAmple = 60;

inline const Sandbox& patient() {
  static const Sandbox sandbox({.wall_time = kAmple, .memory_bytes = int64_t{512} << 20});
  return sandbox;
}

// Waits until no descendant of this process exists; main made it the parent of orphans. False if one stays.
inline bool nothing_is_left() {
  for (int tries = 0; tries < 1000; ++tries) {
    const pid_t ended = ::waitpid(-1, nullptr, WNOHANG);
    if (ended < 0) return true;
    if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

inline int64_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

}  // namespace tokamak
