#include "base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace tokamak::log {

namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

// spdlog's registry owns the logger; the name is all that we hold.
std::shared_ptr<spdlog::logger> logger() {
  auto existing = spdlog::get("tokamak");
  if (existing) return existing;
  auto created = spdlog::stderr_color_mt("tokamak");
  created->set_pattern("%H:%M:%S %^%l%$ %v");
  return created;
}

}  // namespace

void configure(int rank, int size, Level level) {
  auto log = logger();
  log->set_pattern(size > 1 ? str("%H:%M:%S %^%l%$ [", rank, "] %v") : "%H:%M:%S %^%l%$ %v");
  const bool quiet = rank > 0 && level == Level::kInfo;
  log->set_level(to_spdlog(quiet ? Level::kWarning : level));
}

void write(Level level, const std::string& text) { logger()->log(to_spdlog(level), text); }

void flush() { logger()->flush(); }

}  // namespace tokamak::log
