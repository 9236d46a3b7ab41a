// The record of a run's end when another rank ends the process (comm/watch.h): the event "end" in metrics.jsonl, and
// status.json. Rank 0 writes them, or the first of the others if rank 0 is gone. Runs on the watch's thread, whatever
// the rank itself is doing.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "comm/watch.h"
#include "monitor/run_status.h"

namespace tokamak {

// Writes a start's status.json.
struct StatusFile {
  std::string output_dir;
  std::string incarnation;
  int64_t total_steps = 0;

  std::optional<RunStatus> read() const { return read_run_status(output_dir); }  // of the start that wrote it last
  void write(RunStatus::State state, int code, int64_t step, const std::string& cause) const;
};

class LastWords {
 public:
  // `watch` outlives this; nullptr: no other rank ends this one. `flush` brings the records so far into their files,
  // from any thread.
  LastWords(Watch* watch, int rank, StatusFile status, std::function<void()> flush);
  ~LastWords() { forget(); }
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

  void at_step(int64_t step) { step_ = step; }
  int64_t step() const { return step_; }
  void forget();  // the run records its end itself

 private:
  void say(int code, const std::string& why) const;
  bool is_running() const;
  void release(int claimed) const;
  std::string claim() const { return status_.output_dir + "/.end-" + status_.incarnation; }

  Watch* const watch_;
  const int rank_;
  const StatusFile status_;
  const std::function<void()> flush_;
  std::atomic<int64_t> step_ = 0;
};

}  // namespace tokamak
