#include "watch/event_text.h"

#include <cmath>

#include "base/strings.h"
#include "watch/chart.h"

namespace tokamak {

namespace {

std::string seconds(double value) { return text_of(value, ValueUnit::kSeconds); }

std::string start_text(const MetricRecord& record, int64_t number) {
  return str("start ", number, ": ", fixed(record.value_or("ranks", 0), 0), " rank(s) on ",
             record.event->text("hosts"));
}

std::string checkpoint_text(const MetricRecord& record) {
  return str("step ", record.step, " saved: ", human_bytes(record.value_or("checkpoint/bytes", 0)), " in ",
             seconds(record.value_or("checkpoint/seconds", 0)), ", training waited ",
             seconds(record.value_or("checkpoint/stall", 0)));
}

std::string straggler_text(const MetricRecord& record) {
  return str("straggler: ", record.event->detail, " ", seconds(record.value_or("seconds", 0)), " a step, median ",
             seconds(record.value_or("median_seconds", 0)), ", at step ", record.step);
}

}  // namespace

EventLine line_of(const MetricRecord& record, const StartReport& start, int64_t number, int64_t lost) {
  EventLine line{.time = record.time};
  const RunEvent& event = record.event.value();
  if (event.name == "start") {
    line.text = start_text(record, number);
    line.style = Style::kBold;
  } else if (event.name == "resume") {
    const std::string changed = event.text("changed");
    line.text = str("resumed from step ", record.step, lost > 0 ? str(", ", lost, " steps lost") : "",
                    changed.empty() ? "" : "; changed " + changed);
    if (lost > 0 || !changed.empty()) line.style = Style::kWarning;
  } else if (event.name == "ready") {
    line.text = str("training begins after step ", record.step, ", ", seconds(record.value_or("startup/seconds", 0)),
                    " after exec", lost > 0 ? str("; ", lost, " steps lost") : "");
  } else if (event.name == "checkpoint") {
    line.text = checkpoint_text(record);
  } else if (event.name == "straggler") {
    line.text = straggler_text(record);
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

}  // namespace tokamak
