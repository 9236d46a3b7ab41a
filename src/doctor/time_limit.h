// Ends a doctor that hangs, since a rank that waits for another one cannot end by itself. When the time is over, a
// thread ends the process with exit code 6 and names the current check.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/service_thread.h"

namespace tokamak::doctor {

class TimeLimit {
 public:
  explicit TimeLimit(double seconds);

  void enter(const std::string& check);  // begins a check
  // `expired` gets a message when the time is over. If it is empty, the message is logged and the process ends.
  void set_expired(std::function<void(const std::string& message)> expired);

  static constexpr const char* kHint =
      "\n  hint: each waiting rank logs this; a rank that does not, or its file system, hangs";

 private:
  void expire() const;

  const double seconds_;
  const Stopwatch watch_;
  mutable std::mutex mutex_;
  std::function<void(const std::string& message)> expired_;
  std::string check_ = "start";
  double entered_ = 0;
  Timer timer_;  // last: it uses the others
};

}  // namespace tokamak::doctor
