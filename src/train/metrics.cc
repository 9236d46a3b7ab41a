#include "train/metrics.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"

namespace tokamak {

namespace {

std::string percent(double fraction) { return fixed(100.0 * fraction, 1) + "%"; }

nlohmann::ordered_json event_record(const std::string& name, int64_t step, const std::string& detail) {
  return {{"event", name}, {"step", step}, {"time", utc_timestamp()}, {"detail", detail}};
}

}  // namespace

Metrics::Metrics(const MetricsOptions& options, const RunScale& scale, const Device& device, const std::string& path)
    : options_(options), scale_(scale), device_(device), path_(path) {
  if (path_.empty()) return;
  file_.open(path_, std::ios::app);
  if (!file_) fail_errno(Kind::kConfig, str("cannot append to ", path_), "check run.output_dir");
}

void Metrics::step(const StepOutcome& outcome, double data_wait) {
  ++steps_;
  attended_ += outcome.attended;
  if (outcome.applied) {
    loss_sum_ += outcome.loss;
    ++loss_count_;
  } else {
    ++skipped_;
  }
  if (outcome.step % options_.log_interval == 0 || outcome.step == scale_.total_steps) report(outcome, data_wait);
}

void Metrics::report(const StepOutcome& outcome, double data_wait) {
  const double seconds = outcome.time - interval_start_;
  const double tokens_per_second = static_cast<double>(steps_ * scale_.tokens_per_step) / seconds;
  const double loss = loss_count_ > 0 ? loss_sum_ / static_cast<double>(loss_count_) : std::nan("");
  const auto mfu = [&](double attended) { return tokens_per_second * scale_.flops.done(attended) / scale_.peak_flops; };
  const double mfu_full = mfu(scale_.sequence_length), mfu_causal = mfu(0.5 * scale_.sequence_length);
  const double mfu_done = mfu(attended_ / static_cast<double>(steps_));
  const int64_t memory = device_.used_bytes();
  const int64_t done_here = outcome.step - scale_.first_step;
  const double eta = (outcome.time - run_start_) / static_cast<double>(done_here) *
                     static_cast<double>(scale_.total_steps - outcome.step);

  log::info("step ", outcome.step, "/", scale_.total_steps, " (",
            percent(static_cast<double>(outcome.step) / static_cast<double>(scale_.total_steps)), ")  loss ",
            fixed(loss, 4), "  lr ", significant(outcome.lr, 3), "  grad norm ", fixed(outcome.grad_norm, 2), "  ",
            human_count(tokens_per_second), " tokens/s  mfu_full ", percent(mfu_full), "  mfu_causal ",
            percent(mfu_causal), "  mfu_done ", percent(mfu_done), "  memory ", human_bytes(memory), "  eta ",
            human_duration(eta), skipped_ > 0 ? str("  skipped ", skipped_) : "");

  nlohmann::ordered_json record = {{"step", outcome.step},
                                   {"tokens", outcome.step * scale_.tokens_per_step},
                                   {"loss/avg", loss},  // NaN becomes null
                                   {"loss/last", outcome.loss},
                                   {"loss/z", outcome.z_loss},
                                   {"optim/lr", outcome.lr},
                                   {"optim/grad_norm", outcome.grad_norm},
                                   {"optim/skipped_steps", skipped_},
                                   {"throughput/tokens_per_sec", tokens_per_second},
                                   {"throughput/mfu_full", mfu_full},
                                   {"throughput/mfu_causal", mfu_causal},
                                   {"throughput/mfu_done", mfu_done},
                                   {"time/interval", seconds},
                                   {"time/data", data_wait - data_wait_},
                                   {"memory/used", memory}};
  append(record.dump());

  interval_start_ = outcome.time;
  data_wait_ = data_wait;
  loss_sum_ = 0;
  loss_count_ = 0;
  attended_ = 0;
  steps_ = 0;
}

void Metrics::validation(int64_t step, double loss, double seconds) {
  log::info("step ", step, "/", scale_.total_steps, "  validation loss ", fixed(loss, 4), "  perplexity ",
            fixed(std::exp(loss), 2), "  (", fixed(seconds, 1), " s)");
  const nlohmann::ordered_json record = {{"step", step},
                                         {"tokens", step * scale_.tokens_per_step},
                                         {"validation/loss", loss},
                                         {"validation/perplexity", std::exp(loss)},
                                         {"time/validation", seconds}};
  append(record.dump());
}

void Metrics::evals(int64_t step, const std::vector<NamedValue>& results, double seconds) {
  nlohmann::ordered_json record = {{"step", step}, {"tokens", step * scale_.tokens_per_step}};
  std::string line;
  for (const NamedValue& result : results) {
    record["evals/" + result.name] = result.value;
    line += str("  ", result.name, " ", fixed(result.value, 4));
  }
  record["time/evals"] = seconds;
  log::info("step ", step, "/", scale_.total_steps, line, "  (", fixed(seconds, 1), " s)");
  append(record.dump());
}

void Metrics::start(const std::string& detail) {
  nlohmann::ordered_json record = event_record(scale_.first_step > 0 ? "resume" : "start", scale_.first_step, detail);
  record["memory/planned"] = scale_.planned_bytes;
  record["memory/committed"] = scale_.committed_bytes;
  append(record.dump());
}

void Metrics::event(const std::string& name, int64_t step, const std::string& detail) {
  append(event_record(name, step, detail).dump());
}

void Metrics::pause() { pause_.restart(); }

void Metrics::resume() {
  const double seconds = pause_.seconds();
  run_start_ += seconds;
  interval_start_ += seconds;
}

void Metrics::append(const std::string& line) {
  if (!file_.is_open()) return;
  file_ << line << "\n" << std::flush;
  if (file_) return;
  // A log is not worth a run: say so once, and train on.
  log::warning("cannot write ", path_, "; no more metrics go there");
  file_.close();
}

}  // namespace tokamak
