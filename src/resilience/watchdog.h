// Ends a run that hangs. A thread of each rank tells rank 0 every second, over the control connections (comm/watch.h),
// where its rank is and when it last got on; rank 0 tells all others the same. When no rank has made progress for longer
// than the limit of their phases, or a rank has fallen silent, rank 0 gathers what each rank did last, writes the report
// (hang_report.h) and ends all processes with exit code 6. Where rank 0 is the silent one, each of the others does that
// for itself. On the way out nothing is waited for without a deadline.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/world.h"
#include "resilience/flight_record.h"
#include "resilience/hang_report.h"
#include "resilience/progress.h"
#include "resilience/stragglers.h"
#include "resilience/verdict.h"

namespace tokamak {

struct WatchdogOptions {
  ResilienceOptions limits;
  std::string directory;  // run.output_dir; "": no file, the log alone
  int64_t interval = 1;   // steps over which ranks are compared
  double seconds = 5;     // the same, at least
};

class Watchdog final : private Watch::Client {
 public:
  // `world` outlives it. With the default limits, until it is told others. Collective.
  explicit Watchdog(World& world);
  ~Watchdog() override;
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void configure(WatchdogOptions options);

  RunProgress& progress() { return progress_; }
  FlightRecord& flight_record() { return record_; }
  std::string missing() const;               // as missing_ranks; rank 0 hears of all, another rank of rank 0
  std::vector<Straggler> take_stragglers();  // those found since the last call; of rank 0 alone

 private:
  struct Peer {
    RankView view;
    double heard_at = 0;
    std::optional<std::string> calls;  // its answer
  };

  void received(int from, const std::string& bytes) override;
  bool lost(int rank) override;

  void run();
  double interval() const;
  Heartbeat own_heartbeat() const;
  static void tell_common_limit(Heartbeat& beat, const std::vector<RankView>& all);
  std::string own_calls() const;
  std::vector<RankView> views() const;  // as of now
  std::vector<Straggler> compare_ranks(const std::vector<RankView>& views);
  void tell_stragglers(std::vector<Straggler>& found) const;
  void gather_calls(std::unique_lock<std::mutex>& lock, const Verdict& verdict);
  [[noreturn]] void end_run(std::unique_lock<std::mutex>& lock, const Verdict& verdict);

  World& world_;
  Watch* const watch_;
  const size_t rank_;
  RunProgress progress_;
  FlightRecord record_;

  mutable std::mutex mutex_;  // of all below
  std::condition_variable wake_;
  WatchdogOptions options_;
  Limits limits_;
  std::optional<HangFile> file_;
  std::vector<Peer> peers_;  // by rank; rank 0 hears of all, another rank of rank 0
  double resumed_at_ = 0;    // this process was stopped until then: what it did not hear meanwhile says nothing
  bool stop_ = false;
  StragglerDetector detector_;
  std::vector<RankView> marks_;  // at the begin of an interval
  double marked_at_ = 0;
  std::vector<Straggler> stragglers_;  // until somebody takes them
  std::thread thread_;
};

}  // namespace tokamak
