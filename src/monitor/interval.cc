#include "monitor/interval.h"

#include <cmath>

namespace tokamak {

void Interval::add(const StepOutcome& outcome) {
  ++steps_;
  attended_ += outcome.attended;
  if (outcome.applied) {
    loss_sum_ += outcome.loss;
    ++loss_count_;
  } else {
    ++skipped_;
  }
}

void Interval::append_mfu(double tokens_per_second, std::vector<NamedValue>& values) const {
  const auto mfu = [&](double attended) {
    return tokens_per_second * scale_.token_flops(attended) / scale_.peak_flops;
  };
  values.push_back({"throughput/mfu_full", mfu(scale_.sequence_length)});
  values.push_back({"throughput/mfu_causal", mfu(0.5 * scale_.sequence_length)});
  values.push_back({"throughput/mfu_done", mfu(attended_ / static_cast<double>(steps_))});
}

MetricRecord Interval::take(const StepOutcome& last, const End& end) {
  const double seconds = end.time - start_;
  const double tokens_per_second = static_cast<double>(steps_ * scale_.tokens_per_step) / seconds;
  const double loss = loss_count_ > 0 ? loss_sum_ / static_cast<double>(loss_count_) : std::nan("");
  const int64_t done_here = last.step - scale_.first_step;
  MetricRecord record{.step = last.step,
                      .values = {count_value("tokens", last.step * scale_.tokens_per_step),
                                 {"loss/avg", loss},
                                 {"loss/last", last.loss},
                                 {"loss/z", last.z_loss},
                                 {"optim/lr", last.lr},
                                 {"optim/grad_norm", last.grad_norm},
                                 count_value("optim/skipped_steps", skipped_),
                                 {"throughput/tokens_per_sec", tokens_per_second}},
                      .eta = (end.time - run_start_) / static_cast<double>(done_here) *
                             static_cast<double>(scale_.total_steps - last.step)};
  if (scale_.peak_flops > 0) append_mfu(tokens_per_second, record.values);
  record.values.push_back({"time/interval", seconds});
  record.values.push_back({"time/data", end.data_wait - data_wait_});
  record.values.push_back(count_value("memory/used", end.memory_used));
  start_ = end.time;
  data_wait_ = end.data_wait;
  loss_sum_ = 0;
  loss_count_ = 0;
  attended_ = 0;
  steps_ = 0;
  return record;
}

}  // namespace tokamak
