// Threads beside the program's own, and the one that sees to it that a process ends.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace tokamak {

// A thread that receives no signals: those are for the threads of the program. Debuggers, perf and `top -H` show its name,
// of at most 15 characters. Error(kDevice) where the system refuses it.
std::thread start_service_thread(const char* name, std::function<void()> body);

// Of the calling thread: with short slices it preempts threads of longer ones when it wakes, where both share a core.
// Linux 6.12 and later heed it (EEVDF, sched_setattr(2)); without it, it may wait for milliseconds.
void ask_for_short_slices();

// Of the calling thread: it runs where other threads leave a processor idle, and hardly else (nice 19).
void let_others_run_first();

// Unless it is destroyed within `seconds`, `last_words` run (they get a second) and the process ends with `exit_code`:
// for the way out of a process, on which anything may block (a full pipe, a file system that hangs, a peer).
class ExitTimer {
 public:
  ExitTimer(double seconds, int exit_code, std::function<void()> last_words = {});
  ~ExitTimer();
  ExitTimer(const ExitTimer&) = delete;
  ExitTimer& operator=(const ExitTimer&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace tokamak
