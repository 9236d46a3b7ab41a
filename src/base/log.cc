#include "base/log.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>

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

// Lines of the log on a terminal, with the live line beneath them.
class TerminalSink : public spdlog::sinks::ansicolor_stderr_sink_mt {
 public:
  void log(const spdlog::details::log_msg& message) override {
    const std::lock_guard lock(live_mutex_);
    erase();
    spdlog::sinks::ansicolor_stderr_sink_mt::log(message);
    draw();
  }

  void show(const std::string& text) {
    const std::lock_guard lock(live_mutex_);
    live_ = text;
    if (!live_.empty() && visible_part() == shown_ && is_in_foreground()) return;
    erase();
    draw();
  }

 private:
  // A shell that has put the process into the background writes to the terminal itself.
  static bool is_in_foreground() {
    const pid_t group = ::tcgetpgrp(STDERR_FILENO);
    return group < 0 || group == ::getpgrp();
  }

  // Three columns are left, for the cursor and the ^C that a terminal writes there: on a row of its own it would stay.
  std::string visible_part() const {
    struct winsize size {};
    const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return live_.substr(0, static_cast<size_t>(std::max(0, (is_known ? size.ws_col : 80) - 3)));
  }

  void erase() {
    if (shown_.empty()) return;
    if (is_in_foreground()) std::fputs("\r\x1b[K", stderr);
    shown_.clear();
  }

  void draw() {
    if (live_.empty() || !is_in_foreground()) return;
    shown_ = visible_part();
    std::fputs(shown_.c_str(), stderr);
    std::fflush(stderr);
  }

  std::mutex live_mutex_;
  std::string live_;   // as it was given
  std::string shown_;  // what of it stands on the terminal
};

// spdlog's registry owns the logger; the name is all that we hold.
std::shared_ptr<spdlog::logger> logger() {
  auto existing = spdlog::get("tokamak");
  if (existing) return existing;
  auto created = has_terminal() ? spdlog::create<TerminalSink>("tokamak") : spdlog::stderr_color_mt("tokamak");
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

bool has_terminal() {
  const char* name = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) != 0 && name != nullptr && *name != '\0' && std::string_view(name) != "dumb";
}

void show_live_line(const std::string& text) {
  const auto sink = std::dynamic_pointer_cast<TerminalSink>(logger()->sinks().front());
  if (sink) sink->show(text);
}

}  // namespace tokamak::log
