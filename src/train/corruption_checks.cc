#include "train/corruption_checks.h"

#include <algorithm>

#include "base/log.h"
#include "base/process.h"
#include "base/run_files.h"
#include "comm/collective_error.h"
#include "resilience/hang_report.h"

namespace tokamak {

Corruption find_corruption(Comm& comm, const std::string& own, const std::string& received) {
  if (comm.max(own.empty() && received.empty() ? 0 : 1) == 0) return {};
  const std::vector<std::string> hosts = comm.gather_all(host_name());
  std::vector<std::string> found = comm.gather_all(own);
  const bool on_the_way = std::all_of(found.begin(), found.end(), [](const auto& text) { return text.empty(); });
  if (on_the_way) found = comm.gather_all(received);
  Corruption corruption;
  std::vector<std::string> texts;
  for (size_t r = 0; r < found.size(); ++r) {
    if (found[r].empty()) continue;
    corruption.ranks.push_back(static_cast<int>(r));
    if (std::find(corruption.hosts.begin(), corruption.hosts.end(), hosts[r]) == corruption.hosts.end()) {
      corruption.hosts.push_back(hosts[r]);
    }
    texts.push_back(str("rank ", r, " (", hosts[r], "): ", on_the_way ? "what it received of " : "", found[r]));
  }
  corruption.what = join(texts, "; ");
  return corruption;
}

CorruptionChecks::CorruptionChecks(Comm& comm, Engine& engine, const RunConfig& config, OpenRun& open,
                                   RunCheckpoints& checkpoints)
    : comm_(comm), engine_(engine), config_(config), open_(open), checkpoints_(checkpoints) {
  const ResilienceOptions& options = config_.resilience;
  const bool computes_twice = options.recompute_interval > 0;
  const bool deterministic = engine_.backend().device->uses_host_memory() || config_.runtime.deterministic;
  if (computes_twice && !deterministic) {
    throw SharedError(Kind::kConfig,
                      str("resilience.recompute_interval is ", options.recompute_interval,
                          ", but this device does not compute the same bits twice"),
                      "runtime.deterministic: true, which is slower; or recompute_interval: 0");
  }
  if (computes_twice) gradient_check_.emplace(engine_);
  if (comm_.rank() == 0 && (computes_twice || options.verify_state)) {
    log::info("checking for flipped bits: ",
              computes_twice ? str("gradients computed twice every ", options.recompute_interval, " step(s)") : "",
              computes_twice && options.verify_state ? "; " : "",
              options.verify_state ? "weights and moments between updates" : "");
  }
}

void CorruptionChecks::go_to(int64_t step) {
  if (config_.resilience.verify_state) guard_.emplace(engine_);
  sound_step_ = step;
}

bool CorruptionChecks::recompute_due(int64_t step) const {
  return gradient_check_ && step % config_.resilience.recompute_interval == 0;
}

double CorruptionChecks::gradients(int64_t step, Loader& loader, const LoaderOptions& here) {
  // The samples are read again: damaged in memory, they would be the same for both.
  Loader again(open_.data->train, here);
  const auto [attended, own, received] = gradient_check_->run(
      batches_of(again, open_.progress), batches_of(loader, open_.progress), loader.micro_batches_per_step());
  const Corruption corruption = find_corruption(comm_, own, received);
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
  Loader third(open_.data->train, here);
  const bool settled = gradient_check_->settle(batches_of(third, open_.progress), loader.micro_batches_per_step());
  if (comm_.max(settled ? 0 : 1) != 0) {
    end_if_corrupt(corruption, what + ", and a third time again", sound_step_);
  }
  const std::string text = str("silent data corruption, ", what, ": ", corruption.what,
                               "; a third computation agrees with one of them, the run goes on with it");
  record(corruption, text);
  if (comm_.rank() == 0) log::warning(text);
}

void CorruptionChecks::see_outcome(int64_t step) {
  if (!guard_) return;
  end_if_corrupt(find_corruption(comm_, guard_->take()),
                 str("state changed between the updates of steps ", step - 1, " and ", step), step - 1);
}

void CorruptionChecks::verify_state(int64_t step) {
  if (!guard_) return;
  end_if_corrupt(find_corruption(comm_, guard_->changed_now()), str("state changed after the update of step ", step),
                 step);
}

void CorruptionChecks::end_if_corrupt(const Corruption& corruption, const std::string& what, int64_t sound_step) {
  if (corruption.ranks.empty()) return;
  checkpoints_.finish();  // of an earlier step, whose checkpoint may be the newest
  const std::string hosts = join(corruption.hosts, ", ");
  const std::string text = str("silent data corruption, ", what, ": ", corruption.what);
  const std::string newest = checkpoints_.newest_before(sound_step + 1);
  record(corruption, text);
  throw SharedError(
      Kind::kNumerics, text,
      str("train without ", hosts, " until its memory and processors are checked; ",
          newest.empty() ? str("there is no checkpoint up to step ", sound_step, ", the last that was found sound")
                         : str("go on with checkpoint.load=", newest, ": step ", sound_step, " was found sound")));
}

void CorruptionChecks::record(const Corruption& corruption, const std::string& text) {
  open_.records.event({"corruption", text, {{"hosts", join(corruption.hosts, ",")}}},
                      {count_value("rank", corruption.ranks.front())});
  if (comm_.rank() == 0) append_suspects(run_files::at(config_.run.output_dir, run_files::kSuspects), corruption.hosts);
}

}  // namespace tokamak
