// The end of a doctor that hangs: a thread that ends the process, if it is still there after its time, with exit code 6
// and the name of the check it is in. A rank that waits for another one cannot end by itself.
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
  using Expired = std::function<void(const std::string& what)>;

  // `expired`: what happens then; by default the log says it and the process ends.
  explicit TimeLimit(double seconds, Expired expired = end_process);
  ~TimeLimit();  // in time
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  void enter(const std::string& check);  // what runs from now on
  void set_expired(Expired expired);     // in place of what happens then so far; none: the default
  double left() const { return seconds_ - watch_.seconds(); }

 private:
  [[noreturn]] static void end_process(const std::string& what);
  void wait();

  const double seconds_;
  const Stopwatch watch_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Expired expired_;
  std::string check_ = "start";
  double entered_ = 0;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace tokamak::doctor
