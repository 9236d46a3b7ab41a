#include "monitor/monitor.h"

#include <cmath>
#include <utility>

namespace tokamak {

Monitor::Monitor(Setup setup) : setup_(std::move(setup)), interval_(setup_.scale, clock_.at(now_seconds())) {}

void Monitor::step(const StepOutcome& outcome, double data_wait) {
  if (!setup_.recorder.reports()) return;
  setup_.recorder.step(outcome.step);
  interval_.add(outcome);
  const RunScale& scale = setup_.scale;
  const bool is_last = outcome.step == scale.total_steps || outcome.step == scale.last_step;
  if (outcome.step % setup_.log_interval != 0 && !is_last) return;
  setup_.recorder.write(interval_.take(
      outcome, {.time = clock_.at(outcome.time), .data_wait = data_wait, .memory_used = setup_.memory_used()}));
}

void Monitor::validation(int64_t step, double loss, std::optional<double> bits_per_byte,
                         const std::vector<NamedValue>& of_averages, double seconds) {
  MetricRecord record = record_at(step, {{"validation/loss", loss}, {"validation/perplexity", std::exp(loss)}});
  if (bits_per_byte) record.values.push_back({"validation/bits_per_byte", *bits_per_byte});
  for (const NamedValue& one : of_averages) record.values.push_back({"validation/loss_" + one.name, one.value});
  record.values.push_back({"time/validation", seconds});
  setup_.recorder.write(std::move(record));
}

void Monitor::evals(int64_t step, const std::vector<NamedValue>& results, double seconds) {
  MetricRecord record = record_at(step, results);
  for (size_t i = 1; i < record.values.size(); ++i) record.values[i].name.insert(0, "evals/");  // not "tokens"
  record.values.push_back({"time/evals", seconds});
  setup_.recorder.write(std::move(record));
}

void Monitor::samples(int64_t step, std::vector<SampleText> samples, double seconds) {
  MetricRecord record = record_at(step, {{"time/samples", seconds}});
  record.samples = std::move(samples);
  setup_.recorder.write(std::move(record));
}

void Monitor::tensors(int64_t step, std::vector<TensorRecord> tensors, double seconds) {
  MetricRecord record = record_at(step, {{"time/tensor_statistics", seconds}});
  record.tensors = std::move(tensors);
  setup_.recorder.write(std::move(record));
}

void Monitor::event(const std::string& name, int64_t step, const std::string& detail, std::vector<NamedValue> values) {
  setup_.recorder.event(step, {name, detail, {}}, std::move(values));
}

MetricRecord Monitor::record_at(int64_t step, std::vector<NamedValue> values) const {
  values.insert(values.begin(), count_value("tokens", setup_.scale.tokens_after(step)));
  return {.step = step, .values = std::move(values)};
}

}  // namespace tokamak
