// Ends a doctor that hangs: when its time is over, a thread ends the process with exit code 6 and names the check under
// way. A rank that waits for another one cannot end by itself.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.h"

namespace tokamak::doctor {

class TimeLimit {
 public:
  // Called with a message when the time is over. Empty: the message is logged and the process ends.
  using Expired = std::function<void(const std::string& message)>;

  explicit TimeLimit(double seconds, Expired expired = {});
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  void enter(const std::string& check);  // begins a check
  void set_expired(Expired expired);

 private:
  void wait(double seconds);

  const Stopwatch watch_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Expired expired_;
  std::string check_ = "start";
  double entered_ = 0;
  bool over_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace tokamak::doctor
