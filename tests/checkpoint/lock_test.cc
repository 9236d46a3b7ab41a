#include "checkpoint/lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/process.h"
#include "checkpoint/toy_run.h"
#include "support/captured_log.h"

using namespace tokamak;
using Catch::Contains;

TEST_CASE("a second run on the same directory is refused, naming the first") {
  const TempDir dir;
  ToyRun first(dir.file("c"));
  try {
    ToyRun second(dir.file("c"), toy_setup(0, "auto", "toy.2"));
    FAIL("two runs write to one directory");
  } catch (const Error& error) {
    CHECK(error.exit_code() == 4);
    CHECK_THAT(error.what(), Contains("another run is writing to " + dir.file("c")) && Contains("incarnation toy.1") &&
                                 Contains("pid ") && !Contains("job ") && !Contains("requeues"));
  }
  CHECK(first.save(10).committed);
}

TEST_CASE("a lock that is a link to another file is refused, and that file stays as it is") {
  const TempDir dir;
  make_directories(dir.file("c"), Kind::kBug);
  write_text_atomically(dir.file("mine"), "precious", Kind::kBug);
  std::filesystem::create_symlink(dir.file("mine"), dir.file("c/.lock"));
  CHECK_THROWS_WITH(ToyRun(dir.file("c")), Contains("cannot open " + dir.file("c/.lock") + ": it is a symbolic link"));
  CHECK(read_text(dir.file("mine"), Kind::kBug) == "precious");
}

TEST_CASE("what a start would wait for is told without waiting, and takes nothing") {
  const TempDir dir;
  const Incarnation other{.id = "other"};
  CHECK(run_in_the_way(dir.path(), other).empty());
  CHECK_FALSE(exists(dir.file(".lock")));
  {
    DirectoryLock held(dir.path(), {.id = "a", .job = "7"}, 0.0);
    held.claim();
    CHECK_THAT(run_in_the_way(dir.path(), other),
               Contains("incarnation a, job 7, requeues 0, attempt 0, ") && Contains("pid "));
    CHECK(run_in_the_way(dir.path(), {.id = "b", .job = "7", .requeues = 1}).empty());  // b would take over
  }
  CHECK(run_in_the_way(dir.path(), other).empty());
  DirectoryLock(dir.path(), other, 0.0).claim();
}

TEST_CASE("the lock goes with its holder, and a start waits a little for that") {
  const TempDir dir;
  auto first = std::make_unique<DirectoryLock>(dir.path(), Incarnation{.id = "a"}, 0.0);
  std::thread end([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    first.reset();
  });
  CapturedLog captured;
  CHECK_NOTHROW(DirectoryLock(dir.path(), Incarnation{.id = "b"}, 30.0));
  end.join();
  CHECK_THAT(captured.text(), Contains("waiting up to 30 s for another run to leave " + dir.path()));
}

TEST_CASE("whether a process holds the lock is seen from outside, on its own host") {
  const TempDir dir;
  CHECK(is_locked(dir.path()) == std::nullopt);
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    DirectoryLock lock(dir.path(), Incarnation{.id = "a"}, 0.0);
    lock.claim();
    const char byte = 1;
    if (::write(ready[1], &byte, 1) == 1) ::pause();
    ::_exit(1);
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  CHECK(is_locked(dir.path()) == true);
  CHECK(is_locked(dir.path()) == true);  // a look at the lock does not take it
  CHECK_THROWS_WITH(DirectoryLock(dir.path(), Incarnation{.id = "b"}, 0.0), Contains("another run"));
  ::kill(holder, SIGKILL);
  REQUIRE(::waitpid(holder, nullptr, 0) == holder);
  CHECK(is_locked(dir.path()) == false);
  write_text_atomically(dir.file(".lock"), "host elsewhere\npid 1\nsince 2026-01-31T12:34:56Z\n", Kind::kBug);
  CHECK(is_locked(dir.path()) == std::nullopt);
  // A process of another container on this host, invisible from here.
  const std::string hidden = str("host ", host_name(), "\npid 1 of pid:[7]\nsince 2026-01-31T12:34:56Z\n");
  write_text_atomically(dir.file(".lock"), hidden, Kind::kBug);
  CHECK(is_locked(dir.path()) == std::nullopt);
}

TEST_CASE("the zombie removes no old checkpoints either") {
  const TempDir dir;
  const std::string store = dir.file("c");
  auto setup = toy_setup(1);
  setup.incarnation = {.id = "job7.0", .job = "7"};
  ToyRun zombie(store, setup);
  REQUIRE(zombie.save(10).committed);
  zombie.state().fill(20);
  zombie.checkpointer().begin_save(toy_point(20), zombie.state().place(), zombie.state().units(), Retention::kKeepAll);
  REQUIRE(zombie.checkpointer().finish_save().committed);

  setup.incarnation = {.id = "job7.1", .job = "7", .requeues = 1};
  setup.options.load = store + "/step-00000010";
  CapturedLog captured;
  ToyRun later(store, setup);
  REQUIRE(later.resumed() == 10);
  zombie.save(20);  // step 20 is there already, and keep_latest would delete step 10
  CHECK(CheckpointStore(store).steps() == std::vector<int64_t>{10, 20});
}

TEST_CASE("a later start of the same job shuts its predecessor out: the zombie cannot commit") {
  const TempDir dir;
  const std::string store = dir.file("c");
  auto setup = toy_setup();
  setup.incarnation = {.id = "job7.0", .job = "7"};
  ToyRun zombie(store, setup);
  REQUIRE(zombie.save(10).committed);
  zombie.state().fill(20);
  zombie.checkpointer().begin_save(toy_point(20), zombie.state().place(), zombie.state().units());

  setup.incarnation = {.id = "job7.1", .job = "7", .requeues = 1};
  CapturedLog captured;
  ToyRun later(store, setup);
  CHECK_THAT(captured.text(), Contains("taking over") && Contains("incarnation job7.0"));
  CHECK(later.resumed() == 10);
  const std::string taken_over = "a later start of this job has taken over " + store;
  CHECK_THROWS_WITH(zombie.checkpointer().finish_save(), Contains(taken_over));
  CHECK_THROWS_WITH(zombie.save(20), Contains(taken_over));
  CHECK(CheckpointStore(store).steps() == std::vector<int64_t>{10});
  CHECK(CheckpointStore(store).unfinished().empty());
  CHECK(later.save(20).committed);

  setup.incarnation = {.id = "job8.0", .job = "8"};
  CHECK_THROWS_WITH(ToyRun(store, setup), Contains("another run is writing"));
}

TEST_CASE("of one job's starts only a later one takes the directory from a holder that is alive") {
  const auto start = [](std::string job, int64_t requeues, int64_t attempt) {
    return Incarnation{.id = "x", .job = std::move(job), .requeues = requeues, .attempt = attempt};
  };
  CHECK(start("7", 1, 0).follows(start("7", 0, 5)));
  CHECK(start("7", 1, 2).follows(start("7", 1, 1)));
  CHECK(!start("7", 1, 1).follows(start("7", 1, 1)));
  CHECK(!start("7", 0, 9).follows(start("7", 1, 0)));
  CHECK(!start("8", 1, 0).follows(start("7", 0, 0)));
  CHECK(!start("", 1, 0).follows(start("", 0, 0)));

  // Two srun commands of one job use one directory, and neither is a later start.
  const TempDir dir;
  auto setup = toy_setup();
  setup.incarnation = start("7", 0, 0);
  ToyRun first(dir.file("c"), setup);
  CHECK_THROWS_WITH(ToyRun(dir.file("c"), setup), Contains("another run is writing"));
  CHECK(first.save(10).committed);
}

TEST_CASE("the fence is the claim of the latest start, whatever the locks say") {
  const TempDir dir;
  DirectoryLock lock(dir.path(), {.id = "a"}, 0);
  CHECK(lock.fence() == Fence::kAnothers);
  lock.claim();
  CHECK(lock.fence() == Fence::kOurs);
  write_text_atomically(dir.file(".lock"), "incarnation b\n", Kind::kBug);
  CHECK(lock.fence() == Fence::kAnothers);
  remove_file(dir.file(".lock"), Kind::kBug);
  CHECK(lock.fence() == Fence::kUnreadable);
}

TEST_CASE("an incarnation is fit for a file name and knows its job") {
  ::setenv("SLURM_JOB_ID", "4711", 1);
  ::setenv("SLURM_RESTART_COUNT", "2", 1);
  const Incarnation slurm = current_incarnation();
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("SLURM_RESTART_COUNT");
  CHECK(slurm.job == "4711");
  CHECK(slurm.requeues == 2);
  ::setenv("TOKAMAK_JOB", "chain", 1);
  ::setenv("TOKAMAK_ATTEMPT", "7", 1);
  ::setenv("SLURM_JOB_ID", "4711", 1);
  ::setenv("SLURM_RESTART_COUNT", "2", 1);
  const Incarnation chain = current_incarnation();
  for (const char* name : {"TOKAMAK_JOB", "TOKAMAK_ATTEMPT", "SLURM_JOB_ID", "SLURM_RESTART_COUNT"}) ::unsetenv(name);
  CHECK(chain.job == "chain");
  CHECK(chain.requeues == 0);
  CHECK(chain.attempt == 7);
  CHECK_THAT(slurm.id, Catch::StartsWith("job4711.2."));
  const Incarnation alone = current_incarnation();
  CHECK(alone.job.empty());
  CHECK(alone.id.find_first_of("/ :-") == std::string::npos);
}
