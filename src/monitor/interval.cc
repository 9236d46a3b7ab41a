#include "monitor/interval.h"

#include <cmath>

namespace tokamak {

void Interval::add(const StepOutcome& outcome) {
  ++sums_.steps;
  sums_.attended += outcome.attended;
  if (outcome.applied) {
    sums_.loss += outcome.loss;
    ++sums_.applied;
  } else {
    ++skipped_;
  }
}

MetricRecord Interval::take(const StepOutcome& last, const End& end) {
  const double seconds = end.time - start_;
  const double tokens_per_second = static_cast<double>(sums_.steps * scale_.tokens_per_step) / seconds;
  const double seconds_per_step = (end.time - run_start_) / static_cast<double>(last.step - scale_.first_step);
  MetricRecord record{.step = last.step,
                      .values = {count_value("tokens", last.step * scale_.tokens_per_step),
                                 {"loss/avg", sums_.loss / static_cast<double>(sums_.applied)},  // 0/0 of none is NaN
                                 {"loss/last", last.loss},
                                 {"loss/z", last.z_loss},
                                 {"optim/lr", last.lr},
                                 {"optim/grad_norm", last.grad_norm},
                                 count_value("optim/skipped_steps", skipped_),
                                 {"throughput/tokens_per_sec", tokens_per_second}},
                      .eta = seconds_per_step * static_cast<double>(scale_.total_steps - last.step)};
  const auto add_mfu = [&](const char* name, double attended) {
    if (scale_.peak_flops <= 0) return;
    record.values.push_back({name, tokens_per_second * scale_.token_flops(attended) / scale_.peak_flops});
  };
  add_mfu("throughput/mfu_full", scale_.sequence_length);
  add_mfu("throughput/mfu_causal", 0.5 * scale_.sequence_length);
  add_mfu("throughput/mfu_done", sums_.attended / static_cast<double>(sums_.steps));
  record.values.push_back({"time/interval", seconds});
  record.values.push_back({"time/data", end.data_wait - data_wait_});
  record.values.push_back(count_value("memory/used", end.memory_used));
  start_ = end.time;
  data_wait_ = end.data_wait;
  sums_ = {};
  return record;
}

}  // namespace tokamak
