// Tasks are done once, whoever does them, and again if they were interrupted.
#include "data/pipeline/tasks.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/staged.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

// Tasks that write their number, and count how often they ran.
struct Work {
  explicit Work(const TempDir& dir, int count) : runs(static_cast<size_t>(count)) {
    for (int i = 0; i < count; ++i)
      tasks.push_back({dir.file(str("task-", i)), [this, i](const std::string& staging) {
                         ++runs[static_cast<size_t>(i)];
                         write_text_atomically(staging + "/number", str(i), Kind::kData);
                       }});
  }

  std::vector<std::atomic<int>> runs;
  std::vector<Task> tasks;
};

void ignore(const TaskProgress&) {}

}  // namespace

TEST_CASE("each task runs once, and its directory is there at the end") {
  for (const int64_t threads : {1, 3, 8}) {
    const TempDir dir;
    Work work(dir, 7);
    TaskProgress last;
    run_tasks(work.tasks, {.threads = threads}, [&](const TaskProgress& p) { last = p; });
    for (int i = 0; i < 7; ++i) {
      CHECK(work.runs[static_cast<size_t>(i)] == 1);
      CHECK(read_text(dir.file(str("task-", i)) + "/number", Kind::kData) == str(i));
    }
    CHECK(last.done == 7);
    CHECK(last.found == 0);
    run_tasks(work.tasks, {.threads = threads}, [&](const TaskProgress& p) { last = p; });
    for (const std::atomic<int>& runs : work.runs) CHECK(runs == 1);  // they were done
    CHECK(last.found == 7);
  }
}

TEST_CASE("ranks share the tasks, and each returns when all are done") {
  const TempDir dir;
  Work work(dir, 10);
  const auto quick = work.tasks[8].run;
  work.tasks[8].run = [&](const std::string& staging) {  // the last rank's; the others wait for it
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    quick(staging);
  };
  std::vector<std::thread> ranks;
  std::atomic<int> complete = 0;
  for (int64_t rank = 0; rank < 3; ++rank)
    ranks.emplace_back([&, rank] {
      run_tasks(work.tasks, {.rank = rank, .ranks = 3}, ignore);
      bool all = true;
      for (const Task& task : work.tasks) all = all && exists(task.output);
      complete += all ? 1 : 0;
    });
  for (std::thread& rank : ranks) rank.join();
  CHECK(complete == 3);
  for (const std::atomic<int>& runs : work.runs) CHECK(runs == 1);
}

TEST_CASE("a rank that is done does the tasks of ranks that have not started") {
  const TempDir dir;
  Work work(dir, 10);
  bool waits = false;
  run_tasks(work.tasks, {.rank = 1, .ranks = 4, .threads = 2}, [&](const TaskProgress& p) { waits |= p.is_waiting; });
  for (const std::atomic<int>& runs : work.runs) CHECK(runs == 1);
  CHECK(waits);
  run_tasks(work.tasks, {.rank = 0, .ranks = 4}, ignore);  // starts late
  for (const std::atomic<int>& runs : work.runs) CHECK(runs == 1);
}

TEST_CASE("a task that another process is at is waited for") {
  const TempDir dir;
  Work work(dir, 3);
  std::optional<StagedOutput> other(std::in_place, work.tasks[1].output, StagedOutput::What::kDirectory, Kind::kData);
  std::thread process([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    other->commit();
  });
  run_tasks(work.tasks, {}, ignore);
  CHECK(exists(work.tasks[1].output));
  process.join();
  CHECK(work.runs[0] == 1);
  CHECK(work.runs[1] == 0);
  CHECK(work.runs[2] == 1);
}

TEST_CASE("a task that another process has made meanwhile is done") {
  const TempDir dir;
  Work work(dir, 1);
  work.tasks[0].run = [&](const std::string& staging) {
    write_text_atomically(staging + "/number", "0", Kind::kData);
    make_directories(work.tasks[0].output, Kind::kData);
    write_text_atomically(work.tasks[0].output + "/number", "other", Kind::kData);
  };
  run_tasks(work.tasks, {}, ignore);
  CHECK(read_text(work.tasks[0].output + "/number", Kind::kData) == "other");
  CHECK(list_directory(dir.path(), Kind::kData).size() == 1);
}

TEST_CASE("a failed task is thrown and leaves nothing; a second start does what is left") {
  const TempDir dir;
  Work work(dir, 4);
  const auto good = work.tasks[2].run;
  work.tasks[2].run = [](const std::string& staging) {
    write_text_atomically(staging + "/half", "x", Kind::kData);
    fail(Kind::kData, "the disk is full");
  };
  CHECK_THROWS_WITH(run_tasks(work.tasks, {}, ignore), "the disk is full");
  CHECK_FALSE(exists(dir.file("task-2")));
  CHECK(exists(dir.file("task-1")));
  work.tasks[2].run = good;
  run_tasks(work.tasks, {}, ignore);
  for (const std::atomic<int>& runs : work.runs) CHECK(runs == 1);
  CHECK(read_text(dir.file("task-2") + "/number", Kind::kData) == "2");
}

TEST_CASE("without tasks there is nothing to do") {
  int calls = 0;
  run_tasks({}, {}, [&](const TaskProgress&) { ++calls; });
  CHECK(calls > 0);
}
