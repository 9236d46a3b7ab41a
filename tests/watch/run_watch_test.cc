#include "watch/run_watch.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.h"
#include "monitor/jsonl.h"
#include "support/run_records.h"
#include "support/temp_dir.h"

using namespace tokamak;
using Catch::Contains;

namespace {

class Run {
 public:
  Run() { make_directories(checkpoints(), Kind::kBug); }  // as a start does first
  void write(const std::vector<MetricRecord>& records) const {
    JsonlFile file(dir_.file("metrics.jsonl"));
    for (const MetricRecord& record : records) file.write(record);
  }
  RunWatch watch() const {
    return RunWatch(dir_.path(), [] { return std::optional<bool>(); });
  }
  const std::string& path() const { return dir_.path(); }
  std::string checkpoints() const { return dir_.file("checkpoints"); }

 private:
  TempDir dir_;
};

std::string shown(RunWatch& watch) {
  while (watch.refresh()) continue;
  return watch.frame({.rows = 30, .columns = 200}).text();
}

}  // namespace

TEST_CASE("a directory that is not there, or is no run, is an error; one that goes away, and comes back, is a notice") {
  const Run run;
  CHECK_THROWS_WITH(RunWatch(run.checkpoints(), {}),
                    Contains(run.checkpoints() + " is not a run: it has no metrics.jsonl"));
  CHECK_THROWS_WITH(RunWatch(run.path() + "/none", {}), Contains("no run directory " + run.path() + "/none"));
  RunWatch watch = run.watch();
  CHECK_THAT(shown(watch), Contains("no records yet") && Contains("no metrics.jsonl yet"));
  run.write({start(1), ready(2, 0), interval(12, 10, 3)});
  CHECK_THAT(shown(watch), Contains("step 10 of 1000") && !Contains("yet"));
  std::filesystem::rename(run.path(), run.path() + "-away");
  CHECK_THAT(shown(watch), Contains("step 10 of 1000") && Contains("the directory is gone"));
  std::filesystem::rename(run.path() + "-away", run.path());
  CHECK_THAT(shown(watch), Contains("step 10 of 1000") && !Contains("gone"));
}

TEST_CASE("a run that stops before its first line of values is at the step that it has saved") {
  const Run run;
  RunWatch watch = run.watch();
  run.write({start(1), ready(2, 0), event(12, 9, "stop", "signal 15"), event(13, 9, "checkpoint")});
  CHECK_THAT(shown(watch), Contains("step 9 of 1000"));
}

TEST_CASE("what the watchdog has left is an event, at its time, and the end of its start") {
  const Run run;
  RunWatch watch = run.watch();
  run.write({start(1), ready(2, 0), interval(12, 10, 3)});
  write_text_atomically(run.path() + "/hang-20260131T123600Z.txt", "hang, found at x\nrank 3 waits\n", Kind::kBug);
  const std::string hung = shown(watch);
  CHECK_THAT(hung, Contains("  hung: rank 3 waits\n") && Contains("01-31 12:36:00  hang: rank 3 waits\n"));
  run.write({start(100), ready(102, 0), interval(112, 10, 3)});
  const std::string again = shown(watch);
  CHECK_THAT(again, !Contains("  hung: "));
  CHECK(again.find("hang: rank 3 waits") < again.find("start 2: "));
}

TEST_CASE("a metrics.jsonl that a new run has written anew leaves nothing of the old one") {
  const Run run;
  RunWatch watch = run.watch();
  run.write({start(1), ready(2, 0, 777), interval(12, 10, 3), event(13, 10, "stop", "signal 15")});
  CHECK_THAT(shown(watch), Contains("step 10 of 777") && Contains("signal 15") && Contains("loss 3"));
  std::filesystem::remove(run.path() + "/metrics.jsonl");
  run.write({start(1), ready(2, 0, 888), interval(12, 10, 5), interval(22, 20, 4)});
  CHECK_THAT(shown(watch),
             Contains("step 20 of 888") && !Contains("signal 15") && Contains("loss 4") && Contains("start 1, began"));
}
