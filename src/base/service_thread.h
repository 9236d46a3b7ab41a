// Service threads, and timers.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace tokamak {

// A thread that receives no signals, which are for the main threads. Debuggers, perf and `top -H` show its name, of at
// most 15 characters. Error(kDevice) if the system refuses it.
std::thread start_service_thread(const char* name, std::function<void()> body);

// Gives the calling thread short time slices, so that it preempts threads on its core when it wakes. Effective from
// Linux 6.12 on (EEVDF, sched_setattr(2)); before, it may wait for milliseconds.
void ask_for_short_slices();

// Lets the calling thread run almost only on idle cores (nice 19).
void let_others_run_first();

// Calls `act` on a service thread after `first` seconds, and then each `period` seconds (0: never again).
class Timer {
 public:
  Timer(const char* name, double first, double period, std::function<void()> act);
  ~Timer();  // waits for an `act` under way
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;  // last: it uses the others
};

// Unless destroyed within `seconds`, runs `last_words` (for at most a second) and ends the process with `exit_code`.
// For the exit of a process, which a full pipe, a hanging file system or a peer may block.
class ExitTimer {
 public:
  ExitTimer(double seconds, int exit_code, std::function<void()> last_words = {});

 private:
  Timer timer_;
};

}  // namespace tokamak
