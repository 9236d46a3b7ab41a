#include "watch/run_watch.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "monitor/jsonl.h"
#include "support/temp_dir.h"
#include "watch/records.h"

using namespace tokamak;
using Catch::Contains;

namespace {

class Run {
 public:
  void write(const std::vector<MetricRecord>& records) const {
    JsonlFile file(dir_.file("metrics.jsonl"));
    for (const MetricRecord& record : records) file.write(record);
  }
  RunWatch watch() const {
    return RunWatch(dir_.path(), [] { return std::optional<bool>(); });
  }
  const std::string& path() const { return dir_.path(); }

 private:
  TempDir dir_;
};

std::string shown(RunWatch& watch) {
  while (watch.refresh()) continue;
  return watch.frame({.rows = 30, .columns = 200}).text();
}

}  // namespace

TEST_CASE("a directory that is not there is an error; one that goes away, and comes back, is a notice") {
  const Run run;
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

TEST_CASE("a metrics.jsonl that a new run has written anew leaves nothing of the old one") {
  const Run run;
  RunWatch watch = run.watch();
  run.write({start(1), ready(2, 0, 777), interval(12, 10, 3), event(13, 10, "stop", "signal 15")});
  CHECK_THAT(shown(watch), Contains("step 10 of 777") && Contains("signal 15") && Contains("loss 3"));
  std::filesystem::remove(run.path() + "/metrics.jsonl");
  run.write({start(1), ready(2, 0, 888), interval(12, 10, 5), interval(22, 20, 4)});
  CHECK_THAT(shown(watch),
             Contains("step 20 of 888") && !Contains("signal 15") && Contains("loss 4") && Contains("start 1 of"));
}
