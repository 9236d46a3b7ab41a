#include "monitor/live_line.h"

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/log.h"
#include "base/service_thread.h"

namespace tokamak {

namespace {

constexpr auto kBetweenFrames = std::chrono::milliseconds(250);
constexpr int kBarColumns = 24;

std::string bar_text(double share) {
  std::string bar = std::string(static_cast<size_t>(share * kBarColumns), '=') + ">";
  bar.resize(kBarColumns, ' ');
  return "[" + bar + "]";
}

std::string pace_text(double seconds_per_step) {
  return seconds_per_step < 1 ? significant(1 / seconds_per_step, 3) + " steps/s"
                              : significant(seconds_per_step, 3) + " s a step";
}

}  // namespace

std::string live_text(const LiveProgress& progress) {
  const double share = std::clamp(
      static_cast<double>(progress.step) / static_cast<double>(std::max<int64_t>(progress.total_steps, 1)), 0.0, 1.0);
  std::string text =
      str(bar_text(share), " ", fixed(100 * share, 1), "%  step ", progress.step, "/", progress.total_steps);
  if (progress.seconds_per_step > 0) {
    text += str("  ", pace_text(progress.seconds_per_step), "  eta ", human_duration(progress.eta));
  }
  return text;
}

LiveLine::LiveLine(int64_t first_step, int64_t total_steps)
    : total_steps_(total_steps),
      step_(first_step),
      report_{.step = first_step, .time = now_seconds()},
      thread_(start_service_thread("live line", [this] { redraw_until_end(); })) {}

LiveLine::~LiveLine() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  wake_.notify_all();
  thread_.join();
  log::show_live_line("");
}

void LiveLine::interval(const MetricRecord& record) {
  const std::lock_guard lock(mutex_);
  const int64_t steps = std::max(int64_t{1}, record.step - report_.step);
  report_ = {.step = record.step,
             .seconds_per_step = record.at("time/interval") / static_cast<double>(steps),
             .eta = record.eta.value_or(0),
             .time = now_seconds()};
}

void LiveLine::redraw_until_end() {
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    const Report report = report_;
    lock.unlock();  // a terminal may be slow
    LiveProgress now{.step = step_.load(std::memory_order_relaxed), .total_steps = total_steps_};
    const double since = now_seconds() - report.time;
    if (report.seconds_per_step > 0) {
      now.seconds_per_step = report.seconds_per_step;
      now.eta = std::max(0.0, report.eta - since);
    } else if (now.step > report.step) {
      now.seconds_per_step = since / static_cast<double>(now.step - report.step);
      now.eta = now.seconds_per_step * static_cast<double>(total_steps_ - now.step);
    }
    log::show_live_line(live_text(now));
    lock.lock();
    wake_.wait_for(lock, kBetweenFrames, [this] { return is_over_; });
  }
}

}  // namespace tokamak
