// The record of a run's end when another rank ends the process (comm/watch.h): the event "end" in metrics.jsonl, and
// status.json. Rank 0 writes them, or the first of the others if rank 0 is gone. Runs on the watch's thread, whatever
// the rank itself is doing.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "comm/watch.h"

namespace tokamak {

class LastWords {
 public:
  struct Run {
    int rank = 0;
    std::string output_dir;
    std::string incarnation;
    std::string records;  // metrics.jsonl; "": none are kept
    int64_t total_steps = 0;
    std::function<void()> flush;  // the records so far, into their files; from any thread
  };

  LastWords(Watch* watch, Run run);  // `watch` outlives it; nullptr: no other rank ends this one
  ~LastWords() { forget(); }
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

  void at_step(int64_t step) { step_ = step; }
  void forget();  // the run records its end itself

 private:
  void say(int code, const std::string& why) const;
  bool is_running() const;
  void write_end(int code, const std::string& why) const;
  void release(int claimed) const;
  std::string claim() const { return run_.output_dir + "/.end-" + run_.incarnation; }

  Watch* const watch_;
  const Run run_;
  std::atomic<int64_t> step_ = 0;
};

}  // namespace tokamak
