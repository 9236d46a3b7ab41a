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
#include "base/service_thread.h"

namespace tokamak {

namespace {

constexpr double kInterval = 1;  // seconds between heartbeats, at most
constexpr double kLate = 1;      // a thread that wakes so much later than that was stopped
constexpr double kSecondsToAnswer = 2;
constexpr size_t kMostCalls = 100000;     // bytes of what a rank did last
constexpr double kSecondsToBegin = 60;    // from the meeting of the ranks to their first heartbeats
constexpr double kSecondsToFollow = 2.5;  // for the others to write what they have to say, where all do so
constexpr double kSecondsToEnd = 3.8;     // from the verdict to the end, whatever blocks
constexpr auto kCode = static_cast<int>(Kind::kComm);

}  // namespace

Watchdog::Watchdog(World& world)
    : world_(world),
      watch_(world.watch()),
      rank_(static_cast<size_t>(world.rank())),
      record_(progress_),
      limits_(Limits::of(options_.limits)),
      peers_(static_cast<size_t>(watch_ == nullptr ? 1 : world.size())) {
  resumed_at_ = now_seconds();
  for (size_t r = 0; r < peers_.size(); ++r) {
    const int rank = watch_ == nullptr ? world.rank() : static_cast<int>(r);
    RankView& view = peers_[r].view;
    view.host = watch_ == nullptr ? host_name() : watch_->host(rank);
    view.name = str("rank ", rank, " (on ", view.host, ")");
  }
  world_.comm().observe(&record_);
  if (watch_ != nullptr) watch_->attach(this);
  // When all have come here, no heartbeat is lost any more, and a rank that never sends one is known by its process.
  // Nobody watches yet, so a clock does: a rank may have met the others and say nothing more.
  const ExitTimer begins(kSecondsToBegin, kCode, [] {
    log::error("the ranks have met, but not all have begun within ", kSecondsToBegin, " s");
    log::flush();
  });
  const std::vector<std::string> pids = world_.comm().gather_all(str(::getpid()));
  const std::lock_guard lock(mutex_);  // the watch's thread may be there already
  for (size_t r = 0; r < peers_.size(); ++r) {
    peers_[r].view.last.pid = std::atoi(pids[watch_ == nullptr ? rank_ : r].c_str());
  }
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
  if (!options_.directory.empty()) file_.emplace(options_.directory);
  if (file_ && world_.rank() == 0) file_->forget();
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
    // That a rank is stuck is rank 0's to find: it knows of all.
    const bool ours = rank_ == 0 || watch_ == nullptr || !verdict.silent.empty();
    if (verdict.hangs && ours) end_run(lock, verdict);
    Heartbeat beat = all[watch_ == nullptr ? 0 : rank_].last;
    if (rank_ == 0) tell_common_limit(beat, all);
    std::vector<Straggler> found = compare_ranks(all);
    lock.unlock();
    tell_stragglers(found);
    if (watch_ != nullptr) watch_->send(message(beat));
    lock.lock();
    stragglers_.insert(stragglers_.end(), found.begin(), found.end());
  }
}

// Rank 0 says the limit of all that are in its phase, so that they agree on when to give it up. The others say their
// own: else a limit would never fall again.
void Watchdog::tell_common_limit(Heartbeat& beat, const std::vector<RankView>& all) {
  for (const RankView& rank : all) {
    if (!rank.counts() || rank.last.phase != beat.phase || rank.last.limit <= beat.limit) continue;
    beat.limit = rank.last.limit;
    beat.gaps = rank.last.gaps;
  }
}

Heartbeat Watchdog::own_heartbeat() const {
  Heartbeat beat = Heartbeat::of(progress_, record_, limits_);
  beat.idle = std::min(beat.idle, now_seconds() - resumed_at_);
  // Without connections nobody knows whether another rank gets on.
  if (watch_ == nullptr && world_.size() > 1) beat.limit = limits_.ceiling;
  return beat;
}

std::string Watchdog::own_calls() const { return str("  (main thread: ", main_thread_state(), ")\n", record_.text()); }

std::vector<RankView> Watchdog::views() const {
  const double now = now_seconds();
  std::vector<RankView> all;
  for (const Peer& peer : peers_) {
    RankView view = peer.view;
    const bool self = watch_ == nullptr || all.size() == rank_;
    const bool heard_of = rank_ == 0 || self || all.empty();
    if (self) view.last = own_heartbeat();
    view.heard_ago = self || !heard_of ? 0 : now - std::max(peer.heard_at, resumed_at_);
    view.hidden = !heard_of;
    all.push_back(std::move(view));
  }
  // What rank 0 said last of the limit holds for its phase; the ranks that are in it, too, agree by that.
  if (rank_ != 0 && watch_ != nullptr && all[0].last.phase != all[rank_].last.phase) all[0].last.limit = 0;
  return all;
}

std::vector<Straggler> Watchdog::compare_ranks(const std::vector<RankView>& views) {
  if (rank_ != 0 || views.size() < StragglerDetector::kLeastRanks) return {};
  const double now = now_seconds();
  if (marks_.empty()) {
    marks_ = views;
    marked_at_ = now;
  }
  std::vector<double> seconds;
  for (size_t r = 0; r < views.size(); ++r) {
    const int64_t steps = views[r].last.steps - marks_[r].last.steps;
    if (views[r].left || steps < std::max<int64_t>(options_.interval, 1) || now < marked_at_ + options_.seconds)
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

void Watchdog::tell_stragglers(std::vector<Straggler>& found) const {
  for (Straggler& one : found) {
    one.name = watch_->name(one.rank);
    log::warning(one.name, " is slow: it computes ", fixed(one.seconds, 3), " s a step, the median rank ",
                 fixed(one.median, 3), " s, in ", StragglerDetector::kIntervals, " intervals in a row");
  }
}

// The last calls of all ranks that still answer.
void Watchdog::gather_calls(std::unique_lock<std::mutex>& lock, const Verdict& verdict) {
  peers_[watch_ == nullptr ? 0 : rank_].calls = own_calls();
  if (rank_ != 0 || watch_ == nullptr) return;
  lock.unlock();
  watch_->send(message(MessageKind::kAsk));
  lock.lock();
  wake_.wait_for(lock, std::chrono::duration<double>(kSecondsToAnswer), [&] {
    for (size_t r = 0; r < peers_.size(); ++r) {
      const bool silent =
          std::find(verdict.silent.begin(), verdict.silent.end(), static_cast<int>(r)) != verdict.silent.end();
      if (!silent && !peers_[r].view.left && !peers_[r].calls) return false;
    }
    return true;
  });
}

void Watchdog::end_run(std::unique_lock<std::mutex>& lock, const Verdict& verdict) {
  const ExitTimer at_the_latest(kSecondsToEnd, kCode);
  const size_t self = watch_ == nullptr ? 0 : rank_;
  HangReport report = {.verdict = verdict, .ranks = views(), .limits = limits_, .by = self};
  gather_calls(lock, verdict);
  for (const Peer& peer : peers_) report.calls.push_back(peer.calls.value_or(""));
  lock.unlock();
  log::error("the run hangs: ", verdict.reason, " (limit ", fixed(verdict.limit, 1), " s)");
  log::flush();
  if (file_) {
    const std::string time = utc_timestamp();
    const HangFile::Claim claim = file_->claim(time);
    const bool whole = claim.first || rank_ == 0;
    HangFile::append(claim.path, whole ? report.text(time) : calls_section(report.ranks[self], report.calls[self]));
    log::error("what each rank did last: ", claim.path);
    log::flush();
    if (rank_ != 0) std::this_thread::sleep_for(std::chrono::duration<double>(kSecondsToFollow));
    // Another rank hears of rank 0 alone: which of the two is cut off it cannot know. Rank 0, if it lives, can.
    if (whole && (rank_ == 0 || !HangFile::has_verdict_of_rank_zero(claim.path))) append_suspects(options_.directory + "/suspects.txt", report.suspects());
  } else if (rank_ != 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kSecondsToFollow));
  }
  world_.end_all(kCode);
}

}  // namespace tokamak
