#include "checkpoint/inspect.h"

#include <catch2/catch.hpp>

#include "checkpoint/toy_run.h"
#include "support/temp_dir.h"

using namespace tokamak;
using Catch::Contains;

TEST_CASE("inspect says what is in a checkpoint, and lists those of a directory") {
  const TempDir dir;
  ToyRun run(dir.file("c"));
  run.save(10);
  run.save(20);
  const std::string one = inspect_checkpoints(dir.file("c/step-00000010"));
  CHECK_THAT(one, Contains("step         10\n") && Contains("tokens       10000\n") && Contains("world size   1\n") &&
                      Contains("state        master, exp_avg, exp_avg_sq\n") && Contains("embed.weight") &&
                      Contains("(37, 9)") && Contains(str("parameters   ", toy_table().count(), " ")) &&
                      Contains("in 7 tensors"));
  truncate_by_one(dir.file("c/step-00000010/") + kOnlyFile);
  const std::string all = inspect_checkpoints(dir.file("c"));
  CHECK_THAT(all, Contains("step-00000010     damaged: ") && Contains("step-00000020"));
}

TEST_CASE("verify names each file, right or not, of all checkpoints, and then fails with all that is wrong") {
  const TempDir dir;
  ToyRun run(dir.file("c"));
  run.save(10);
  run.save(20);
  std::vector<std::string> lines;
  const auto collect = [&](const std::string& line) { lines.push_back(line); };
  verify_checkpoints(dir.file("c"), collect);
  REQUIRE(lines.size() == 4);
  CHECK_THAT(lines[1], Contains("step-00000010/" + kOnlyFile + "  ok"));
  flip_bit(dir.file("c/step-00000020/") + kOnlyFile, 500);
  lines.clear();
  try {
    verify_checkpoints(dir.file("c"), collect);
    FAIL("damage was not found");
  } catch (const Error& error) {
    CHECK(error.exit_code() == 4);
    CHECK_THAT(error.what(), Contains("step-00000020/" + kOnlyFile + " is damaged"));
  }
  CHECK(lines.size() == 4);
  truncate_by_one(dir.file("c/step-00000010/") + kOnlyFile);
  lines.clear();
  CHECK_THROWS_WITH(verify_checkpoints(dir.file("c"), collect), Contains("step-00000010") && Contains("step-00000020"));
  REQUIRE(lines.size() == 3);  // open() finds the wrong size, so that checkpoint has one line
  CHECK_THAT(lines[2], Contains("step-00000020/" + kOnlyFile + " is damaged"));
  run.save(30);
  CHECK_NOTHROW(verify_checkpoints(dir.file("c/step-00000030/"), collect));
  CHECK_THROWS(verify_checkpoints(dir.file("c/step-00000020"), collect));
}

TEST_CASE("a run's directory stands for its checkpoints") {
  const TempDir dir;
  ToyRun(dir.file("run/checkpoints")).save(10);
  CHECK_THAT(inspect_checkpoints(dir.file("run")), Contains("step-00000010"));
  std::vector<std::string> lines;
  verify_checkpoints(dir.file("run"), [&](const std::string& line) { lines.push_back(line); });
  CHECK(lines.size() == 2);
}

TEST_CASE("a place without checkpoints is an error, not an empty table") {
  const TempDir dir;
  CHECK_THROWS_WITH(inspect_checkpoints(dir.path()), Contains("there is no checkpoint in"));
  CHECK_THROWS_WITH(inspect_checkpoints(dir.file("none")), Contains("there is no checkpoint in"));
  CHECK_THROWS_WITH(inspect_checkpoints(dir.file("step-00000010")), Contains("is not a directory"));
  CHECK_THROWS_WITH(verify_checkpoints(dir.path(), [](const std::string&) {}), Contains("there is no checkpoint in"));
}
