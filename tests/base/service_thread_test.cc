// Threads beside the program's own.
#include "base/service_thread.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <csignal>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"

using namespace tokamak;

namespace {

bool takes_signals() {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  return sigismember(&blocked, SIGTERM) == 0;
}

#ifndef __SANITIZE_ADDRESS__  // which needs address space itself
// Ends the process, with 0 where everything is as it should be without address space for another stack.
[[noreturn]] void start_without_memory() {
  const auto end = [](const std::string& wrong) {
    std::fputs((wrong + "\n").c_str(), stderr);
    ::_exit(wrong.empty() ? 0 : 1);
  };
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto bytes = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE));
  const rlimit limit{bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) end("no limit");
  constexpr int kMoreThanStacksAreCached = 100;  // glibc keeps those of threads that ended
  std::mutex held;
  held.lock();
  std::vector<std::thread> threads;
  try {
    for (int i = 0; i < kMoreThanStacksAreCached; ++i) {
      threads.push_back(start_service_thread("test", [&] { held.lock(); }));
    }
  } catch (const Error& error) {
    if (error.kind() != Kind::kDevice) end("another kind");
    if (std::string(error.what()).find("the thread 'test': Resource temporarily") == std::string::npos)
      end(error.what());
    if (error.hint().find("ulimit -v") == std::string::npos) end(error.hint());
    end(takes_signals() ? "" : "signals stay blocked");
  }
  end("all threads started");
  std::abort();
}
#endif

}  // namespace

TEST_CASE("a service thread takes no signals, and the thread that starts it goes on taking them") {
  bool takes = true;
  start_service_thread("test", [&] { takes = takes_signals(); }).join();
  CHECK(!takes);
  CHECK(takes_signals());
}

TEST_CASE("a thread that lets others run first does so alone") {
  int there = 0;
  start_service_thread("test", [&] {
    let_others_run_first();
    there = getpriority(PRIO_PROCESS, 0);
  }).join();
  CHECK(there == 19);
  CHECK(getpriority(PRIO_PROCESS, 0) < 19);
}

#ifndef __SANITIZE_ADDRESS__
TEST_CASE("a thread that the system refuses is an error that names it and the limits, and signals arrive as before") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) start_without_memory();
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
#endif
