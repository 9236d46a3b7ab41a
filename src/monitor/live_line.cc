#include "monitor/live_line.h"

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"

namespace tokamak {

namespace {

constexpr double kSecondsBetweenFrames = 0.25;
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
    : step_(first_step), report_{.step = first_step, .total_steps = total_steps}, reported_at_(now_seconds()) {
  timer_.emplace("live line", 0, kSecondsBetweenFrames, [this] { redraw(); });
}

LiveLine::~LiveLine() {
  timer_.reset();
  log::show_live_line("");
}

void LiveLine::interval(const MetricRecord& record) {
  const std::lock_guard lock(mutex_);
  const int64_t steps = std::max(int64_t{1}, record.step - report_.step);
  report_.step = record.step;
  report_.seconds_per_step = record.at("time/interval") / static_cast<double>(steps);
  report_.eta = record.eta.value_or(0);
  reported_at_ = now_seconds();
}

void LiveLine::redraw() {
  std::unique_lock lock(mutex_);
  LiveProgress now = report_;
  const double since = now_seconds() - reported_at_;
  lock.unlock();  // a terminal may be slow
  const int64_t steps = step_.load(std::memory_order_relaxed) - now.step;
  now.step += steps;
  if (now.seconds_per_step > 0) {
    now.eta = std::max(0.0, now.eta - since);
  } else if (steps > 0) {
    now.seconds_per_step = since / static_cast<double>(steps);
    now.eta = now.seconds_per_step * static_cast<double>(now.total_steps - now.step);
  }
  log::show_live_line(live_text(now));
}

}  // namespace tokamak
