#include "watch/run_view.h"

#include <algorithm>

#include "base/strings.h"
#include "monitor/history.h"
#include "watch/chart.h"

namespace tokamak {

namespace {

constexpr size_t kMostEvents = 200;

bool is_shown(std::string_view name) {
  const bool is_drawn = std::any_of(std::begin(kChartKinds), std::end(kChartKinds),
                                    [&](const ChartKind& kind) { return name == kind.name || name == kind.second; });
  return is_drawn || name == kSaveCurve || starts_with(name, kEvaluations);
}

}  // namespace

RunView::RunView() : curves_(is_shown) {}

void RunView::see(const MetricRecord& record) {
  if (account_.see(record)) straggler_.reset();
  curves_.see(record);
  if (record.event) see_event(record);
  step_ = sets_course(record) ? record.step : std::max(step_, record.step);
}

void RunView::see_event(const MetricRecord& record) {
  const bool goes_on = record.is("resume") || record.is("ready");
  const int64_t lost = goes_on ? std::max<int64_t>(0, step_ - record.step) : 0;
  events_.push_back(line_of(record, account_.last(), account_.starts(), lost));
  if (events_.size() > kMostEvents) events_.pop_front();
  if (record.is("straggler")) straggler_ = events_.back();
  if (goes_on) {
    while (!restarts_.empty() && restarts_.back() >= record.step) restarts_.pop_back();
    if (account_.starts() > 1) restarts_.push_back(record.step);
  }
  if (record.is("ready")) {
    memory_planned_ = record.value_or("memory/planned", 0);
    device_ = record.event->text("device");
  }
}

}  // namespace tokamak
