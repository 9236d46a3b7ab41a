// Silent data corruption: when the trainer looks for it, and how a run ends that has found some.
#include <algorithm>

#include "base/log.h"
#include "comm/collective_error.h"
#include "resilience/hang_report.h"
#include "train/corruption.h"
#include "train/trainer.h"

namespace tokamak {

void Trainer::start_checks() {
  const ResilienceOptions& options = config_.resilience;
  const bool deterministic = run_.engine->backend().device->uses_host_memory() || config_.runtime.deterministic;
  if (options.recompute_interval > 0 && !deterministic) {
    throw SharedError(Kind::kConfig,
                      str("resilience.recompute_interval is ", options.recompute_interval,
                          ", but this device does not compute the same bits twice"),
                      "runtime.deterministic: true, which is slower; or recompute_interval: 0");
  }
  if (options.recompute_interval > 0) gradient_check_.emplace(*run_.engine);
  if (options.verify_state) state_guard_.emplace(*run_.engine);
  if (comm_.rank() == 0 && (gradient_check_ || state_guard_)) {
    log::info("checking for flipped bits: ",
              gradient_check_ ? str("gradients computed twice every ", options.recompute_interval, " step(s)") : "",
              gradient_check_ && state_guard_ ? "; " : "", state_guard_ ? "weights and moments between updates" : "");
  }
  sound_step_ = state_.step;
}

bool Trainer::recompute_due(int64_t step) const {
  return gradient_check_ && step % config_.resilience.recompute_interval == 0;
}

double Trainer::checked_gradients(int64_t step) {
  // Data that was damaged in memory would be the same for both.
  Loader again(data_->train, loader_options());
  const auto [attended, difference] = gradient_check_->run(
      [&] { return next_batch(again); }, [&] { return next_batch(*loader_); }, loader_->micro_batches_per_step());
  const Corruption corruption = find_corruption(comm_, difference.own, difference.received);
  if (!corruption.ranks.empty()) compute_again(step, corruption);
  sound_step_ = step;
  return attended;
}

// A particle flips a bit once. A host that does it again within one start has a fault, and may do it alike twice.
void Trainer::compute_again(int64_t step, const Corruption& corruption) {
  const std::string what = str("the gradients of step ", step, " computed twice differ");
  for (const std::string& host : corruption.hosts) {
    const bool again = std::find(blamed_hosts_.begin(), blamed_hosts_.end(), host) != blamed_hosts_.end();
    if (again) end_if_corrupt(corruption, what + ", not for the first time", sound_step_);
    blamed_hosts_.push_back(host);
  }
  Loader third(data_->train, loader_options());
  const bool settled = gradient_check_->settle([&] { return next_batch(third); }, loader_->micro_batches_per_step());
  if (comm_.max(settled ? 0 : 1) != 0) end_if_corrupt(corruption, what + ", and a third time again", sound_step_);
  const std::string text = str("silent data corruption, ", what, ": ", corruption.what,
                               "; a third computation agrees with one of them, the run goes on with it");
  record_corruption(corruption, text);
  if (comm_.rank() == 0) log::warning(text);
}

void Trainer::see_state(int64_t step) {
  if (!state_guard_) return;
  end_if_corrupt(find_corruption(comm_, state_guard_->take()),
                 str("state changed between the updates of steps ", step - 1, " and ", step), step - 1);
}

void Trainer::check_state_before_save() {
  if (!state_guard_) return;
  end_if_corrupt(find_corruption(comm_, state_guard_->changed_now()),
                 str("state changed after the update of step ", state_.step), state_.step);
}

void Trainer::end_if_corrupt(const Corruption& corruption, const std::string& what, int64_t sound_step) {
  if (corruption.ranks.empty()) return;
  finish_save();  // of an earlier step, whose checkpoint may be the newest
  const std::string hosts = join(corruption.hosts, ", ");
  const std::string text = str("silent data corruption, ", what, ": ", corruption.what);
  const std::string newest = checkpoints_->newest_before(sound_step + 1);
  record_corruption(corruption, text);
  throw SharedError(
      Kind::kNumerics, text,
      str("train without ", hosts, " until its memory and processors are checked; ",
          newest.empty() ? str("there is no checkpoint up to step ", sound_step, ", the last that was found sound")
                         : str("go on with checkpoint.load=", newest, ": step ", sound_step, " was found sound")));
}

void Trainer::record_corruption(const Corruption& corruption, const std::string& text) {
  recorder_->event(state_.step, {"corruption", text, {{"hosts", join(corruption.hosts, ",")}}},
                   {count_value("rank", corruption.ranks.front())});
  if (comm_.rank() == 0) append_suspects(config_.run.output_dir + "/suspects.txt", corruption.hosts);
}

}  // namespace tokamak
