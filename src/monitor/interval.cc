#include "monitor/interval.h"

#include <cmath>

namespace tokamak {

void Interval::add(const StepOutcome& outcome) {
  ++sums_.steps;
  sums_.attended += outcome.attended;
  sums_.length += scale_.length(outcome.step);
  if (outcome.applied) {
    sums_.loss += outcome.loss;
    ++sums_.applied;
  } else {
    ++skipped_;
  }
}

MetricRecord Interval::take(const StepOutcome& last, const End& end) {
  const double seconds = end.time - start_;
  const int64_t tokens = scale_.tokens_after(last.step);
  const double tokens_per_second = double(tokens - scale_.tokens_after(last.step - sums_.steps)) / seconds;
  const double of_start = double(tokens - scale_.tokens_after(scale_.first_step));
  const double to_come = double(scale_.tokens_after(scale_.total_steps) - tokens);
  MetricRecord record{.step = last.step,
                      .values = {count_value("tokens", tokens),
                                 {"loss/avg", sums_.loss / static_cast<double>(sums_.applied)},  // 0/0 of none is NaN
                                 {"loss/last", last.loss},
                                 {"loss/z", last.z_loss},
                                 {"optim/lr", last.lr},
                                 {"optim/grad_norm", last.grad_norm},
                                 count_value("optim/skipped_steps", skipped_),
                                 {"throughput/tokens_per_sec", tokens_per_second}},
                      .eta = (end.time - run_start_) * to_come / of_start};
  if (scale_.peak_flops > 0) {
    const auto add_mfu = [&](const char* name, double token_flops) {
      record.values.push_back({name, tokens_per_second * token_flops / scale_.peak_flops});
    };
    const double length = double(sums_.length) / double(sums_.steps);
    add_mfu("throughput/mfu_full", scale_.token_flops.full(length));
    add_mfu("throughput/mfu_causal", scale_.token_flops.causal(length));
    add_mfu("throughput/mfu_done", scale_.token_flops.done(sums_.attended / double(sums_.steps)));
  }
  record.values.push_back({"time/interval", seconds});
  record.values.push_back({"time/data", end.data_wait - data_wait_});
  record.values.push_back(count_value("memory/used", end.memory_used));
  start_ = end.time;
  data_wait_ = end.data_wait;
  sums_ = {};
  return record;
}

}  // namespace tokamak
