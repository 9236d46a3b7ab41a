#include "base/log.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "base/file.h"
#include "base/printable.h"

namespace tokamak::log {

namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  constexpr std::array kLevels = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err,
                                  spdlog::level::off};
  return kLevels[static_cast<size_t>(level)];
}

// Log lines on a terminal, with the live line below them.
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

  // Leaves three columns for the cursor and the ^C that a terminal prints, which would otherwise wrap and stay.
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
  std::string live_;   // the latest argument of show_live_line()
  std::string shown_;  // the visible part on the terminal
};

// Sets the patterns of lines. The file's have the date, since it is read weeks later. `rank`: "[3] ", or "".
void set_patterns(spdlog::logger& logger, const std::string& rank) {
  logger.sinks().front()->set_pattern("%H:%M:%S %^%l%$ " + rank + "%v");
  logger.sinks().back()->set_pattern("%Y-%m-%d %H:%M:%S %l " + rank + "%v");
}

// The file of also_to(). Until it is set, `early_` holds the newest lines for it. Each line is one append, since other
// processes write to the file, too.
class RunFileSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void open(const std::string& path) {
    const std::lock_guard lock(mutex_);
    path_ = path;
    for (const std::string& line : early_) write(line);
    early_.clear();
  }
  void allow_rotation(bool allowed) { rotates_ = allowed; }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    const std::string line(text.data(), text.size());
    if (!path_.empty()) return write(line);
    early_.push_back(line);
    if (early_.size() > kEarlyLines) early_.pop_front();
  }
  void flush_() override {}

 private:
  static constexpr size_t kEarlyLines = 200;
  static constexpr int64_t kMostBytes = int64_t{32} << 20;

  // A failing disk costs the line, not the run; the next line tries again.
  void write(const std::string& line) {
    if (!fd_) fd_ = open_regular(path_, O_WRONLY | O_CREAT | O_APPEND);
    struct stat info {};
    if (rotates_ && fd_ && ::fstat(fd_.get(), &info) == 0 && info.st_size + std::ssize(line) > kMostBytes) {
      std::rename((path_ + ".1").c_str(), (path_ + ".2").c_str());
      std::rename(path_.c_str(), (path_ + ".1").c_str());
      fd_ = open_regular(path_, O_WRONLY | O_CREAT | O_APPEND);
    }
    if (fd_ && ::write(fd_.get(), line.data(), line.size()) != std::ssize(line)) fd_ = Descriptor();
  }

  std::string path_;  // "" until set
  Descriptor fd_;
  std::deque<std::string> early_;
  std::atomic<bool> rotates_ = false;  // true in one process; others go on writing to the renamed file
};

// spdlog's registry owns the logger; we hold only the name.
std::shared_ptr<spdlog::logger> logger() {
  auto existing = spdlog::get("tokamak");
  if (existing) return existing;
  auto created = has_terminal() ? spdlog::create<TerminalSink>("tokamak") : spdlog::stderr_color_mt("tokamak");
  created->sinks().push_back(std::make_shared<RunFileSink>());
  set_patterns(*created, "");
  return created;
}

RunFileSink& run_file() { return dynamic_cast<RunFileSink&>(*logger()->sinks().back()); }

}  // namespace

void configure(int rank, int size, Level level) {
  auto log = logger();
  set_patterns(*log, size > 1 ? str("[", rank, "] ") : "");
  run_file().allow_rotation(rank == 0);
  const bool quiet = rank > 0 && level == Level::kInfo;
  log->set_level(to_spdlog(quiet ? Level::kWarning : level));
}

void write(Level level, const std::string& text) { logger()->log(to_spdlog(level), printable_lines(text)); }

void flush() { logger()->flush(); }

void also_to(const std::string& path) { run_file().open(path); }

bool has_terminal() {
  const char* name = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) != 0 && name != nullptr && *name != '\0' && std::string_view(name) != "dumb";
}

void show_live_line(const std::string& text) {
  const auto sink = std::dynamic_pointer_cast<TerminalSink>(logger()->sinks().front());
  if (sink) sink->show(text);
}

}  // namespace tokamak::log
