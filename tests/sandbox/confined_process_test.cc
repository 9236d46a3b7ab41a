// The process that runs programs leaves nothing behind, and nothing of ours reaches it.
#include "sandbox/confined_process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "base/clock.h"
#include "base/error.h"
#include "sandbox/judging.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

// Everything that a program says until it ends.
std::string said_by(const std::vector<std::string>& words, const std::string& input, const std::string& filter) {
  ConfinedProcess process(words, input, filter);
  while (process.read_more(now_seconds() + kAmple)) {
  }
  CHECK(process.end() == 0);
  return process.output();
}

std::string said_by(const std::string& script, const std::string& input = "", const std::string& filter = "") {
  return said_by({"/bin/sh", "-c", script}, input, filter);
}

}  // namespace

TEST_CASE("a process has its input, its filter and no other descriptor, variable or blocked signal of ours") {
  CHECK(said_by("cat; cat <&3", "input, ", "filter") == "input, filter");
  const int open = ::fcntl(STDIN_FILENO, F_DUPFD, 20);      // without O_CLOEXEC, as libraries do
  CHECK(said_by("ls /proc/self/fd") == "0\n1\n2\n3\n4\n");  // 4: the folder
  ::close(open);
  ::setenv("TOKAMAK_CANARY", "secret", 1);
  CHECK_THAT(said_by("env"), !Catch::Contains("CANARY"));
  ::unsetenv("TOKAMAK_CANARY");
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto ignored = ::signal(SIGPIPE, SIG_IGN);
  const std::string state = said_by({"/usr/bin/grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"}, "", "");
  ::signal(SIGPIPE, ignored);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  // The C library keeps signals 32 and 33, the bits 0x180000000, for itself.
  CHECK_THAT(state, Catch::Matches("SigBlk:\t0{16}\nSigIgn:\t0{7}[01][08]0{7}\n"));
}

TEST_CASE("endless output is read and dropped, and the process ends with its object") {
  {
    ConfinedProcess process({"/bin/sh", "-c", "yes & yes >&2 & wait"}, "", "");
    for (int i = 0; i < 1000; ++i) REQUIRE(process.read_more(now_seconds() + kAmple));
    CHECK(process.output().size() <= ConfinedProcess::kMostRead);
    CHECK(process.errors().size() == ConfinedProcess::kMostRead);
    CHECK(!process.has_ended());
  }
  CHECK(nothing_is_left());
}

TEST_CASE("all of a process's group is killed, whatever it does with signals and its output") {
  {
    ConfinedProcess process({"/bin/sh", "-c", "trap '' TERM HUP; sleep 1000 >/dev/null 2>&1 & echo; sleep 1000"}, "",
                            "");
    while (process.output().empty()) REQUIRE(process.read_more(now_seconds() + kAmple));
  }
  CHECK(nothing_is_left());
}

TEST_CASE("a process's end has its exit code or signal") {
  for (const auto& [script, code] : {std::pair{"exit 5", 5}, {"kill -SEGV $$", 128 + SIGSEGV}}) {
    ConfinedProcess process({"/bin/sh", "-c", script}, "", "");
    while (process.read_more(now_seconds() + kAmple)) {
    }
    CHECK(process.has_ended());
    CHECK(process.end() == code);
    CHECK(process.end() == code);
  }
  CHECK_THROWS_AS(ConfinedProcess({"/nowhere/program"}, "", ""), Error);
}

TEST_CASE("a killed process that judges leaves no program behind") {
  const TempDir own;
  const pid_t judge = ::fork();
  if (judge == 0) {
    const Sandbox sandbox({.wall_time = 1000});
    std::ofstream(own.file("ready")) << "yes";
    sandbox.run("import time\ntime.sleep(1000)");
    ::_exit(0);
  }
  while (!std::filesystem::exists(own.file("ready"))) ::usleep(10000);
  ::usleep(300000);  // it is then likely to execute; earlier it must leave nothing behind either
  ::kill(judge, SIGKILL);
  CHECK(nothing_is_left());
}
