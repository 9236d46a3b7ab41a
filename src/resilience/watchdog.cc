#include "resilience/watchdog.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/process.h"
#include "base/run_files.h"
#include "base/service_thread.h"
#include "comm/rank_zero.h"

namespace tokamak {

namespace {

constexpr double kInterval = 1;  // seconds between heartbeats, at most
constexpr double kLate = 1;      // seconds; a thread that wakes later than that was stopped
constexpr double kSecondsToAnswer = 2;
constexpr double kSecondsToCompare = 5;   // least interval over which ranks are compared
constexpr size_t kMostCalls = 100000;     // bytes of a rank's report of its calls
constexpr double kSecondsToBegin = 60;    // from the meeting of the ranks to their first heartbeats
constexpr double kSecondsToFollow = 2.5;  // in which other ranks write their parts of the file
constexpr double kSecondsToEnd = 3.8;     // from the verdict to the end, whatever blocks
constexpr auto kCode = static_cast<int>(Kind::kComm);

}  // namespace

Watchdog::Watchdog(World& world)
    : world_(world),
      watch_(world.watch()),
      self_(watch_ == nullptr ? 0 : static_cast<size_t>(world.rank())),
      record_(progress_),
      limits_(Limits::of(options_.limits)),
      peers_(watch_ == nullptr ? 1 : static_cast<size_t>(world.size())),
      resumed_at_(now_seconds()) {
  const int first = watch_ == nullptr ? world.rank() : 0;  // the rank of peers_[0]
  for (size_t i = 0; i < peers_.size(); ++i) {
    const int rank = first + static_cast<int>(i);
    RankView& view = peers_[i].view;
    view.host = watch_ == nullptr ? host_name() : watch_->host(rank);
    view.name = str("rank ", rank, " (on ", view.host, ")");
    view.hidden = self_ != 0 && i != 0 && i != self_;
  }
  world_.comm().observe(&record_);
  if (watch_ != nullptr) watch_->attach(this);
  // After this collective no heartbeat is lost, and the pid of a rank that never sends one is known. No watchdog guards
  // this collective, so a timer does: a rank may have met the others and then hang.
  const ExitTimer begins(kSecondsToBegin, kCode, [] {
    log::error("the ranks have met, but not all have begun within ", kSecondsToBegin, " s");
    log::flush();
  });
  const std::vector<pid_t> pids = gather_values(world_.comm(), ::getpid());
  const std::lock_guard lock(mutex_);  // the watch's thread may already run
  for (size_t i = 0; i < peers_.size(); ++i) peers_[i].view.last.pid = pids[first + i];
  thread_ = start_service_thread("watchdog", [this] { run(); });
}

Watchdog::~Watchdog() {
  progress_.enter(Phase::kEnd);
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    if (options_.limits.watchdog_on()) world_.leave_within(limits_.of_phase({}));
  }
  wake_.notify_all();
  thread_.join();
  world_.comm().observe(nullptr);
  if (watch_ == nullptr) return;
  watch_->attach(nullptr);
  watch_->send(message(MessageKind::kLeave));
}

void Watchdog::configure(WatchdogOptions options) {
  const std::lock_guard lock(mutex_);
  options_ = std::move(options);
  limits_ = Limits::of(options_.limits);
  if (!options_.directory.empty() && world_.rank() == 0) forget_hang_file(options_.directory);
  if (watch_ != nullptr && options_.limits.watchdog_on()) watch_->give_up_after(limits_.floor);
  wake_.notify_all();
}

// ---- on the watch's thread -----------------------------------------------------------------------------------------

void Watchdog::received(int from, const std::string& bytes) {
  if (bytes.empty()) return;
  const auto kind = static_cast<MessageKind>(bytes.front());
  if (kind == MessageKind::kAsk) {  // rank 0 is about to end the run
    watch_->send(message(MessageKind::kReport, own_calls()));
    return;
  }
  const std::lock_guard lock(mutex_);
  Peer& peer = peers_[static_cast<size_t>(from)];
  if (kind == MessageKind::kHeartbeat && read_heartbeat(bytes, peer.view.last)) {
    peer.heard_at = now_seconds();
  } else if (kind == MessageKind::kReport) {
    peer.calls = printable_lines(std::string_view(bytes).substr(1, kMostCalls));
    wake_.notify_all();
  } else if (kind == MessageKind::kLeave) {
    peer.view.left = true;
  }
}

bool Watchdog::lost(int rank) {
  const std::lock_guard lock(mutex_);
  if (!options_.limits.watchdog_on()) return false;
  peers_[static_cast<size_t>(rank)].view.lost = true;
  wake_.notify_all();
  return true;
}

// ---- on a thread of its own ----------------------------------------------------------------------------------------

double Watchdog::interval() const {
  return options_.limits.watchdog_on() ? std::min(kInterval, limits_.floor / 5) : kInterval;
}

void Watchdog::run() {
  std::unique_lock lock(mutex_);
  for (bool first = true; !stop_; first = false) {
    const double before = now_seconds(), wait = first ? 0 : interval();
    wake_.wait_for(lock, std::chrono::duration<double>(wait));
    const double now = now_seconds();
    if (now > before + wait + kLate) resumed_at_ = now;
    if (stop_ || !options_.limits.watchdog_on()) continue;
    const std::vector<RankView> all = views();
    const Verdict verdict = judge(all, interval());
    // Only rank 0 can find a rank that is stuck; the others find that rank 0 is silent.
    if (verdict.hangs && (self_ == 0 || !verdict.silent.empty())) end_run(lock, verdict);
    Heartbeat beat = all[self_].last;
    // Rank 0 sends the largest limit of its phase, so that all agree when to give up rank 0. Others send their own
    // limit, or it would never fall again.
    for (const RankView& rank : all) {
      if (self_ != 0 || !rank.counts() || rank.last.phase != beat.phase || rank.last.limit <= beat.limit) continue;
      beat.limit = rank.last.limit;
      beat.gaps = rank.last.gaps;
    }
    std::vector<Straggler> found = compare_ranks(all);
    lock.unlock();
    for (Straggler& one : found) {
      one.name = watch_->name(one.rank);
      log::warning(one.name, " is slow: it computes ", fixed(one.seconds, 3), " s a step, the median rank ",
                   fixed(one.median, 3), " s, in ", StragglerDetector::kIntervals, " intervals in a row");
    }
    if (watch_ != nullptr) watch_->send(message(beat));
    lock.lock();
    stragglers_.insert(stragglers_.end(), found.begin(), found.end());
  }
}

Heartbeat Watchdog::own_heartbeat() const {
  Heartbeat beat = Heartbeat::of(progress_, record_, limits_);
  beat.idle = std::min(beat.idle, now_seconds() - resumed_at_);
  // Without connections this rank cannot see the progress of others.
  if (watch_ == nullptr && world_.size() > 1) beat.limit = limits_.ceiling;
  return beat;
}

std::string Watchdog::own_calls() const { return str("  (main thread: ", main_thread_state(), ")\n", record_.text()); }

std::vector<RankView> Watchdog::views() const {
  const double now = now_seconds();
  std::vector<RankView> all;
  for (const Peer& peer : peers_) {
    RankView view = peer.view;
    const bool self = all.size() == self_;
    if (self) view.last = own_heartbeat();
    view.heard_ago = self || view.hidden ? 0 : now - std::max(peer.heard_at, resumed_at_);
    all.push_back(std::move(view));
  }
  // Rank 0's limit holds for its own phase only: the ranks in that phase agree on it.
  if (self_ != 0 && all[0].last.phase != all[self_].last.phase) all[0].last.limit = 0;
  return all;
}

std::vector<Straggler> Watchdog::compare_ranks(const std::vector<RankView>& views) {
  if (self_ != 0 || views.size() < StragglerDetector::kLeastRanks) return {};
  const double now = now_seconds();
  if (marks_.empty()) {
    marks_ = views;
    marked_at_ = now;
  }
  std::vector<double> seconds;
  for (size_t r = 0; r < views.size(); ++r) {
    const int64_t steps = views[r].last.steps - marks_[r].last.steps;
    if (views[r].left || steps < std::max<int64_t>(options_.interval, 1) || now < marked_at_ + kSecondsToCompare)
      return {};
    seconds.push_back((views[r].last.computing - marks_[r].last.computing) / static_cast<double>(steps));
  }
  marks_ = views;
  marked_at_ = now;
  return detector_.see(seconds);
}

std::string Watchdog::missing() const {
  const std::lock_guard lock(mutex_);
  return missing_ranks(views(), interval());
}

std::vector<Straggler> Watchdog::take_stragglers() {
  const std::lock_guard lock(mutex_);
  return std::exchange(stragglers_, {});
}

// The last calls of all ranks that still answer.
void Watchdog::gather_calls(std::unique_lock<std::mutex>& lock, const Verdict& verdict) {
  peers_[self_].calls = own_calls();
  if (self_ != 0 || watch_ == nullptr) return;
  lock.unlock();
  watch_->send(message(MessageKind::kAsk));
  lock.lock();
  wake_.wait_for(lock, std::chrono::duration<double>(kSecondsToAnswer), [&] {
    for (size_t r = 0; r < peers_.size(); ++r) {
      const bool silent = std::binary_search(verdict.silent.begin(), verdict.silent.end(), static_cast<int>(r));
      if (!silent && !peers_[r].view.left && !peers_[r].calls) return false;
    }
    return true;
  });
}

void Watchdog::end_run(std::unique_lock<std::mutex>& lock, const Verdict& verdict) {
  const ExitTimer at_the_latest(kSecondsToEnd, kCode);
  const bool lead = world_.rank() == 0;
  HangReport report = {.verdict = verdict, .ranks = views(), .limits = limits_, .by = self_};
  gather_calls(lock, verdict);
  for (const Peer& peer : peers_) report.calls.push_back(peer.calls.value_or(""));
  lock.unlock();
  log::error("the run hangs: ", verdict.reason, " (limit ", fixed(verdict.limit, 1), " s)");
  log::flush();
  std::optional<HangFile> file;
  const std::string time = utc_timestamp();
  if (!options_.directory.empty()) file = claim_hang_file(options_.directory, time);
  const bool whole = file && (file->first || lead);
  if (file) {
    append_text(file->path, whole ? report.text(time) : calls_section(report.ranks[self_], report.calls[self_]));
    log::error("the last calls of each rank: ", file->path);
    log::flush();
  }
  if (!lead) std::this_thread::sleep_for(std::chrono::duration<double>(kSecondsToFollow));
  // A rank that hears only rank 0 cannot tell which of the two is cut off. The verdict of a living rank 0 comes first.
  if (whole && (lead || !has_verdict_of_rank_zero(file->path))) {
    append_suspects(run_files::at(options_.directory, run_files::kSuspects), report.suspects());
  }
  world_.end_all(kCode);
}

}  // namespace tokamak
