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

// `start`, `number`: the event's start and its number from 1. `lost`: steps that it trains again.
EventLine line_of(const MetricRecord& record, const StartReport& start, int64_t number, int64_t lost) {
  EventLine line{.time = record.time};
  const RunEvent& event = record.event.value();
  const auto seconds = [&](const char* name) { return text_of(record.value_or(name, 0), ValueUnit::kSeconds); };
  if (event.name == "start") {
    const std::string ranks = fixed(record.value_or("ranks", 0), 0);
    line.text = str("start ", number, ": ", ranks, " rank(s) on ", event.text("hosts"));
    line.style = Style::kBold;
  } else if (event.name == "resume") {
    const std::string changed = event.text("changed");
    line.text = str("resumed from step ", record.step, lost > 0 ? str(", ", lost, " steps lost") : "",
                    changed.empty() ? "" : "; changed " + changed);
    if (lost > 0 || !changed.empty()) line.style = Style::kWarning;
  } else if (event.name == "ready") {
    line.text = str("training begins after step ", record.step, ", ", seconds("startup/seconds"), " after exec",
                    lost > 0 ? str("; ", lost, " steps lost") : "");
  } else if (event.name == "checkpoint") {
    line.text = str("step ", record.step, " saved: ", human_bytes(record.value_or("checkpoint/bytes", 0)), " in ",
                    seconds("checkpoint/seconds"), ", training waited ", seconds("checkpoint/stall"));
  } else if (event.name == "straggler") {
    line.text = str("straggler: ", event.detail, " ", seconds("seconds"), " a step, median ", seconds("median_seconds"),
                    ", at step ", record.step);
    line.style = Style::kWarning;
  } else if (event.name == "end") {
    const double code = record.value_or("exit_code", 0);
    const std::string where = start.ready ? str("end at step ", record.step) : "end before the first step";
    line.text = str(where, ", exit ", fixed(code, 0), ": ", event.detail);
    line.style = code == 0 ? Style::kGood : code == 75 ? Style::kWarning : Style::kBad;
  } else {
    line.text = str(event.name, " at step ", record.step, event.detail.empty() ? "" : ": ", event.detail);
    line.style = event.name == "stop" ? Style::kWarning : Style::kBad;
  }
  return line;
}

}  // namespace

RunView::RunView() : curves(is_shown) {}

void RunView::see(const MetricRecord& record) {
  if (account.see(record)) straggler.reset();
  curves.see(record);
  if (record.event) see_event(record);
  step = sets_course(record) ? record.step : std::max(step, record.step);
}

void RunView::see_event(const MetricRecord& record) {
  const bool goes_on = goes_back(record);
  const int64_t lost = goes_on ? std::max<int64_t>(0, step - record.step) : 0;
  events.push_back(line_of(record, account.last(), account.starts(), lost));
  if (events.size() > kMostEvents) events.pop_front();
  if (record.is("straggler")) straggler = events.back();
  if (goes_on) {
    while (!restarts.empty() && restarts.back() >= record.step) restarts.pop_back();
    if (account.starts() > 1) restarts.push_back(record.step);
  }
  if (record.is("ready")) {
    memory_planned = record.value_or("memory/planned", 0);
    device = record.event->text("device");
  }
}

}  // namespace tokamak
