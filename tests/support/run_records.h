// Records as the trainer writes them. Times are seconds since kBegin.
#pragma once

#include "base/clock.h"
#include "monitor/record.h"

namespace tokamak {

constexpr int64_t kBegin = 1769862896000;  // 2026-01-31T12:34:56Z

inline int64_t at(double seconds) { return kBegin + static_cast<int64_t>(1e3 * seconds); }

inline MetricRecord event(double time, int64_t step, const std::string& name, const std::string& detail = "",
                          std::vector<NamedValue> values = {}) {
  return {.step = step, .time = at(time), .event = RunEvent{name, detail, {}}, .values = std::move(values)};
}

inline MetricRecord start(double time, int64_t ranks = 1) {
  MetricRecord record = event(time, 0, "start", "", {count_value("ranks", ranks)});
  record.event->texts = {{"exec", utc_text(at(time - 1))}, {"incarnation", "one"}, {"hosts", "n1,n2"}};
  return record;
}

inline MetricRecord ready(double time, int64_t step, int64_t total = 1000) {
  return event(
      time, step, "ready", "",
      {{"startup/seconds", 2.5}, count_value("total_steps", total), count_value("total_tokens", 2000 * total)});
}

// An interval of ten steps, a second each.
inline MetricRecord interval(double time, int64_t step, double loss) {
  return {.step = step,
          .time = at(time),
          .values = {count_value("tokens", 2000 * step),
                     {"loss/avg", loss},
                     {"optim/lr", 3e-4},
                     {"optim/grad_norm", 0.5},
                     {"throughput/tokens_per_sec", 2000},
                     {"time/interval", 10}}};
}

}  // namespace tokamak
