#include "doctor/time_limit.h"

#include <cstdlib>

#include "base/error.h"
#include "base/log.h"
#include "base/process.h"

namespace tokamak::doctor {

TimeLimit::TimeLimit(double seconds) : seconds_(seconds), timer_("time limit", seconds, 0, [this] { expire(); }) {}

void TimeLimit::enter(const std::string& check) {
  const std::lock_guard lock(mutex_);
  check_ = check;
  entered_ = watch_.seconds();
}

void TimeLimit::set_expired(std::function<void(const std::string& message)> expired) {
  const std::lock_guard lock(mutex_);
  expired_ = std::move(expired);
}

void TimeLimit::expire() const {
  const std::lock_guard lock(mutex_);
  const std::string message =
      str("doctor: the check '", check_, "' has not ended on ", host_name(), ": it has taken ",
          fixed(watch_.seconds() - entered_, 1), " s, and all checks together may take ", fixed(seconds_, 0), " s");
  if (expired_) return expired_(message);
  log::error(message, kHint);
  log::flush();
  std::_Exit(static_cast<int>(Kind::kComm));
}

}  // namespace tokamak::doctor
