#include "doctor/time_limit.h"

#include <cstdlib>

#include "base/error.h"
#include "base/log.h"
#include "base/process.h"

namespace tokamak::doctor {

TimeLimit::TimeLimit(double seconds, Expired expired) : seconds_(seconds), expired_(std::move(expired)) {
  thread_ = std::thread([this] { wait(); });
}

TimeLimit::~TimeLimit() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void TimeLimit::enter(const std::string& check) {
  const std::lock_guard lock(mutex_);
  check_ = check;
  entered_ = watch_.seconds();
}

void TimeLimit::set_expired(Expired expired) {
  const std::lock_guard lock(mutex_);
  expired_ = expired ? std::move(expired) : end_process;
}

void TimeLimit::wait() {
  std::unique_lock lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds_);
  if (changed_.wait_until(lock, until, [this] { return over_; })) return;
  expired_(str("doctor: the check '", check_, "' has not ended on ", host_name(), ": in it for ",
               fixed(watch_.seconds() - entered_, 1), " s, and ", fixed(seconds_, 0),
               " s are the limit of all checks"));
}

void TimeLimit::end_process(const std::string& what) {
  log::error(what, "\n  hint: each rank that waits says this; the one that says nothing, or its file system, hangs");
  log::flush();
  std::_Exit(static_cast<int>(Kind::kComm));
}

}  // namespace tokamak::doctor
