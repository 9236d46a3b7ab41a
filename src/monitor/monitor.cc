#include "monitor/monitor.h"

#include <cmath>

namespace tokamak {

Monitor::Monitor(Setup setup)
    : log_interval_(setup.log_interval),
      memory_used_(std::move(setup.memory_used)),
      sinks_(std::move(setup.sinks)),
      interval_(std::move(setup.scale), clock_.at(now_seconds())) {}

void Monitor::step(const StepOutcome& outcome, double data_wait) {
  if (sinks_.empty()) return;
  interval_.add(outcome);
  if (outcome.step % log_interval_ != 0 && outcome.step != interval_.scale().total_steps) return;
  write(interval_.take(outcome,
                       {.time = clock_.at(outcome.time), .data_wait = data_wait, .memory_used = memory_used_()}));
}

void Monitor::validation(int64_t step, double loss, double seconds) {
  MetricRecord record = record_at(step);
  record.values.push_back({"validation/loss", loss});
  record.values.push_back({"validation/perplexity", std::exp(loss)});
  record.values.push_back({"time/validation", seconds});
  write(record);
}

void Monitor::evals(int64_t step, const std::vector<NamedValue>& results, double seconds) {
  MetricRecord record = record_at(step);
  for (const NamedValue& one : results) record.values.push_back({"evals/" + one.name, one.value, one.whole});
  record.values.push_back({"time/evals", seconds});
  write(record);
}

void Monitor::event(const std::string& name, int64_t step, const std::string& detail, std::vector<NamedValue> values) {
  write({.step = step, .event = RunEvent{name, utc_timestamp(), detail}, .values = std::move(values)});
}

MetricRecord Monitor::record_at(int64_t step) const {
  return {.step = step, .values = {count_value("tokens", step * interval_.scale().tokens_per_step)}};
}

void Monitor::write(const MetricRecord& record) {
  for (const auto& sink : sinks_) sink->write(record);
}

}  // namespace tokamak
