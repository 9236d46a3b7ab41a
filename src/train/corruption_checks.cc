#include "train/corruption_checks.h"

#include <algorithm>

#include "base/log.h"
#include "base/run_files.h"
#include "comm/collective_error.h"
#include "resilience/hang_report.h"

namespace tokamak {

CorruptionChecks::CorruptionChecks(Setup setup) : setup_(setup) {
  const ResilienceOptions& options = setup_.config.resilience;
  const bool computes_twice = options.recompute_interval > 0;
  const bool deterministic = setup_.engine.backend().device->uses_host_memory() || setup_.config.runtime.deterministic;
  if (computes_twice && !deterministic) {
    throw SharedError(Kind::kConfig,
                      str("resilience.recompute_interval is ", options.recompute_interval,
                          ", but this device does not compute the same bits twice"),
                      "runtime.deterministic: true, which is slower; or recompute_interval: 0");
  }
  if (computes_twice) gradient_check_.emplace(setup_.engine);
  if (setup_.comm.rank() == 0 && (computes_twice || options.verify_state)) {
    log::info("checking for flipped bits: ",
              computes_twice ? str("gradients computed twice every ", options.recompute_interval, " step(s)") : "",
              computes_twice && options.verify_state ? "; " : "",
              options.verify_state ? "weights and moments between updates" : "");
  }
}

void CorruptionChecks::go_to(int64_t step) {
  if (setup_.config.resilience.verify_state) guard_.emplace(setup_.engine);
  sound_step_ = step;
}

bool CorruptionChecks::recompute_due(int64_t step) const {
  return gradient_check_ && step % setup_.config.resilience.recompute_interval == 0;
}

double CorruptionChecks::gradients(int64_t step, Loader& loader, const LoaderOptions& here) {
  // The samples are read again: damaged in memory, they would be the same for both.
  Loader again(setup_.data, here);
  const auto [attended, difference] = gradient_check_->run(
      batches_of(again, setup_.progress), batches_of(loader, setup_.progress), loader.micro_batches_per_step());
  const Corruption corruption = find_corruption(setup_.comm, difference.own, difference.received);
  if (!corruption.ranks.empty()) compute_again(step, loader, here, corruption);
  sound_step_ = step;
  return attended;
}

// A particle flips a bit once. A host that does it again within one start has a fault, which may repeat the same error.
void CorruptionChecks::compute_again(int64_t step, Loader& loader, const LoaderOptions& here,
                                     const Corruption& corruption) {
  const std::string what = str("the gradients of step ", step, " computed twice differ");
  for (const std::string& host : corruption.hosts) {
    const bool again = std::find(blamed_hosts_.begin(), blamed_hosts_.end(), host) != blamed_hosts_.end();
    if (again) end_if_corrupt(corruption, what + ", not for the first time", sound_step_);
    blamed_hosts_.push_back(host);
  }
  Loader third(setup_.data, here);
  const bool settled = gradient_check_->settle(batches_of(third, setup_.progress), loader.micro_batches_per_step());
  if (setup_.comm.max(settled ? 0 : 1) != 0) {
    end_if_corrupt(corruption, what + ", and a third time again", sound_step_);
  }
  const std::string text = str("silent data corruption, ", what, ": ", corruption.what,
                               "; a third computation agrees with one of them, the run goes on with it");
  record(corruption, text);
  if (setup_.comm.rank() == 0) log::warning(text);
}

void CorruptionChecks::see_outcome(int64_t step) {
  if (!guard_) return;
  end_if_corrupt(find_corruption(setup_.comm, guard_->take()),
                 str("state changed between the updates of steps ", step - 1, " and ", step), step - 1);
}

void CorruptionChecks::verify_state(int64_t step) {
  if (!guard_) return;
  end_if_corrupt(find_corruption(setup_.comm, guard_->changed_now()),
                 str("state changed after the update of step ", step), step);
}

void CorruptionChecks::end_if_corrupt(const Corruption& corruption, const std::string& what, int64_t sound_step) {
  if (corruption.ranks.empty()) return;
  setup_.saves.finish();  // of an earlier step, whose checkpoint may be the newest
  const std::string hosts = join(corruption.hosts, ", ");
  const std::string text = str("silent data corruption, ", what, ": ", corruption.what);
  const std::string newest = setup_.checkpoints.newest_before(sound_step + 1);
  record(corruption, text);
  throw SharedError(
      Kind::kNumerics, text,
      str("train without ", hosts, " until its memory and processors are checked; ",
          newest.empty() ? str("there is no checkpoint up to step ", sound_step, ", the last that was found sound")
                         : str("go on with checkpoint.load=", newest, ": step ", sound_step, " was found sound")));
}

void CorruptionChecks::record(const Corruption& corruption, const std::string& text) {
  setup_.records.event({"corruption", text, {{"hosts", join(corruption.hosts, ",")}}},
                       {count_value("rank", corruption.ranks.front())});
  if (setup_.comm.rank() == 0)
    append_suspects(run_files::at(setup_.config.run.output_dir, run_files::kSuspects), corruption.hosts);
}

}  // namespace tokamak
