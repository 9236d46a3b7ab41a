// Ends a run that hangs. A thread of each rank sends a heartbeat to rank 0 every second over the control connections
// (comm/watch.h); rank 0 sends its own to all. A run hangs if a rank is silent, or no rank makes progress, for longer
// than the limit of the ranks' phases. Then rank 0 gathers the last calls of all, writes the report (hang_report.h) and
// ends all processes with exit code 6. If rank 0 is the silent one, each of the others does that for itself. Every wait
// on this path has a deadline.
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
  std::string directory;  // run.output_dir; "": no file, only the log
  int64_t interval = 1;   // least steps over which ranks are compared; some seconds, too
};

class Watchdog final : private Watch::Client {
 public:
  // `world` must outlive it. Starts with the default limits. Collective.
  explicit Watchdog(World& world);
  ~Watchdog() override;
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void configure(WatchdogOptions options);

  RunProgress& progress() { return progress_; }
  FlightRecord& flight_record() { return record_; }
  std::string missing() const;               // as missing_ranks; only rank 0 hears from all ranks
  std::vector<Straggler> take_stragglers();  // found since the last call; rank 0 alone finds any

 private:
  struct Peer {
    RankView view;
    double heard_at = 0;
    std::optional<std::string> calls;  // what it answered to kAsk
  };

  void received(int from, const std::string& bytes) override;
  bool lost(int rank) override;

  void run();
  double interval() const;
  Heartbeat own_heartbeat() const;
  std::string own_calls() const;
  std::vector<RankView> views() const;  // as of now
  std::vector<Straggler> compare_ranks(const std::vector<RankView>& views);
  void gather_calls(std::unique_lock<std::mutex>& lock, const Verdict& verdict);
  [[noreturn]] void end_run(std::unique_lock<std::mutex>& lock, const Verdict& verdict);

  World& world_;
  Watch* const watch_;
  const size_t self_;  // this rank's place in peers_; 0 also without connections
  RunProgress progress_;
  FlightRecord record_;

  mutable std::mutex mutex_;  // guards all members below
  std::condition_variable wake_;
  WatchdogOptions options_;
  Limits limits_;
  std::vector<Peer> peers_;  // by rank; without connections only this rank
  double resumed_at_ = 0;    // this process was stopped until then, so silence before that proves nothing
  bool stop_ = false;
  StragglerDetector detector_;
  std::vector<RankView> marks_;  // the ranks as they were when the interval began
  double marked_at_ = 0;
  std::vector<Straggler> stragglers_;  // for take_stragglers()
  std::thread thread_;
};

}  // namespace tokamak
