#include "doctor/time_limit.h"

#include <cstdlib>

#include "base/error.h"
#include "base/log.h"
#include "base/process.h"
#include "base/service_thread.h"

namespace tokamak::doctor {

TimeLimit::TimeLimit(double seconds, Expired expired)
    : expired_(std::move(expired)), thread_(start_service_thread("time limit", [this, seconds] { wait(seconds); })) {}

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
  expired_ = std::move(expired);
}

void TimeLimit::wait(double seconds) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return over_; })) return;
  const std::string message =
      str("doctor: the check '", check_, "' has not ended on ", host_name(), ": it has taken ",
          fixed(watch_.seconds() - entered_, 1), " s, and all checks together may take ", fixed(seconds, 0), " s");
  if (expired_) return expired_(message);
  log::error(message, "\n  hint: each rank that waits logs this; the one that logs nothing, or its file system, hangs");
  log::flush();
  std::_Exit(static_cast<int>(Kind::kComm));
}

}  // namespace tokamak::doctor
