// The checkpoint that a run starts from when checkpoints are whole, damaged, unfinished or missing.
#include "checkpoint/choose.h"

#include <catch2/catch.hpp>

#include "checkpoint/toy_run.h"
#include "support/captured_log.h"

using namespace tokamak;
using Catch::Contains;

namespace {

// Writes checkpoints of steps 10, 20 and 30.
void write_three(const std::string& directory) {
  ToyRun run(directory);
  for (const int64_t step : {10, 20, 30}) REQUIRE(run.save(step).committed);
}

Error error_of_start(const std::string& directory, const std::string& load = "auto") {
  try {
    ToyRun run(directory, toy_setup(0, load, "toy.2"));
  } catch (const Error& error) {
    return error;
  }
  FAIL("the run has started");
  return Error(Kind::kBug, "");
}

}  // namespace

TEST_CASE("a run starts anew in a directory that is empty or not there") {
  const TempDir dir;
  CHECK(!ToyRun(dir.file("checkpoints")).resumed());
  CHECK(!ToyRun(dir.file("checkpoints")).resumed());
  CHECK(!ToyRun(dir.file("checkpoints"), toy_setup(0, "none")).resumed());
}

TEST_CASE("a run continues from the newest checkpoint, to the bit") {
  const TempDir dir;
  write_three(dir.file("c"));
  const ToyRun run(dir.file("c"), toy_setup(0, "auto", "toy.2"));
  CHECK(run.resumed() == 30);
  CHECK(run.whole());
}

TEST_CASE("what the trainer saved comes back beside the weights") {
  const TempDir dir;
  write_three(dir.file("c"));
  const TrainingPoint point = CheckpointStore(dir.file("c")).open(20).manifest().point;
  CHECK((point.state == RunState{.step = 20, .tokens = 20000, .next_sample = 160}));
  CHECK(point.seed == 1234);
  CHECK(point.config == toy_point(20).config);
  CHECK(point.data == toy_point(20).data);
}

TEST_CASE("a damaged checkpoint is skipped, naming directory, file and reason") {
  const TempDir dir;
  const std::string store = dir.file("c");
  write_three(store);
  const std::string newest = store + "/step-00000030/";
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(newest + kOnlyFile));
  std::string reason;
  SECTION("a bit of the header flipped") {
    flip_bit(newest + kOnlyFile, 20);
    reason = newest + kOnlyFile + " is damaged: its checksum is ";
  }
  SECTION("the last bit flipped") {
    flip_bit(newest + kOnlyFile, bytes - 1);
    reason = newest + kOnlyFile + " is damaged: its checksum is ";
  }
  SECTION("a file cut short") {
    truncate_by_one(newest + kOnlyFile);
    reason = str(newest, kOnlyFile, " has ", bytes - 1, " bytes, it should have ", bytes);
  }
  SECTION("a file missing") {
    remove_file(newest + kOnlyFile, Kind::kBug);
    reason = newest + kOnlyFile + ": No such file";
  }
  SECTION("the manifest missing") {
    remove_file(newest + "manifest.json", Kind::kBug);
    reason = newest + "manifest.json is missing";
  }
  SECTION("the manifest damaged") {
    flip_bit(newest + "manifest.json", 200);
    reason = newest + "manifest.json is damaged: its checksum is ";
  }
  SECTION("the manifest cut short") {
    truncate_by_one(newest + "manifest.json");
    reason = newest + "manifest.json is damaged: it is cut short";
  }
  SECTION("another step's checkpoint under its name") {
    remove_tree(newest, Kind::kBug);
    std::filesystem::copy(store + "/step-00000010", newest);
    reason = newest + "manifest.json is that of step 10";
  }
  SECTION("a file of another step in its place") {
    std::filesystem::copy(store + "/step-00000010/" + kOnlyFile, newest + kOnlyFile,
                          std::filesystem::copy_options::overwrite_existing);
    reason = newest + kOnlyFile + " is damaged: its checksum is ";
  }
  SECTION("an empty directory") {
    remove_tree(newest, Kind::kBug);
    make_directories(newest, Kind::kBug);
    reason = newest + "manifest.json is missing";
  }
  const auto before = contents_of(store);
  CapturedLog captured;
  const ToyRun run(store, toy_setup(0, "auto", "toy.2"));
  const std::string text = captured.text();
  CHECK(run.resumed() == 20);
  CHECK(run.whole());
  CHECK_THAT(text, Contains("checkpoint " + store + "/step-00000030 cannot be used: ") && Contains(reason));
  CHECK_THAT(text, Contains("falling back from step 30 to step 20"));
  CHECK(contents_of(store) == before);
}

TEST_CASE("where checkpoints are and none can be used, the run ends with code 4 and nothing is changed") {
  const TempDir dir;
  const std::string store = dir.file("c");
  write_three(store);
  make_directories(store + "/step-00000040.tmp-toy.0", Kind::kBug);
  flip_bit(store + "/step-00000010/" + kOnlyFile, 300);
  remove_file(store + "/step-00000020/manifest.json", Kind::kBug);
  remove_file(store + "/step-00000030/" + kOnlyFile, Kind::kBug);
  const auto before = contents_of(store);
  CapturedLog captured;
  const Error error = error_of_start(store);
  captured.text();
  CHECK(error.exit_code() == 4);
  CHECK_THAT(error.what(), Contains("holds 3 checkpoints and none can be used") && Contains("step-00000010") &&
                               Contains("step-00000020/manifest.json is missing") && Contains("step-00000030"));
  CHECK_THAT(error.hint(), Contains("Nothing was changed"));
  CHECK(contents_of(store) == before);
}

TEST_CASE("load: none is refused where there are checkpoints, damaged or not") {
  const TempDir dir;
  write_three(dir.file("c"));
  for (const int64_t step : {10, 20, 30}) remove_tree(dir.file("c/") + step_name(step) + "/manifest.json", Kind::kBug);
  const auto before = contents_of(dir.file("c"));
  const Error error = error_of_start(dir.file("c"), "none");
  CHECK(error.exit_code() == 4);
  CHECK_THAT(error.what(), Contains("checkpoint.load is 'none'") && Contains("the newest of step 30"));
  CHECK(contents_of(dir.file("c")) == before);
}

TEST_CASE("load: PATH takes that checkpoint, and no other in its place") {
  const TempDir dir;
  const std::string store = dir.file("c");
  write_three(store);
  const ToyRun run(store, toy_setup(0, store + "/step-00000020", "toy.2"));
  CHECK(run.resumed() == 20);
  CHECK(run.whole());
  const ToyRun elsewhere(dir.file("other"), toy_setup(0, store + "/step-00000010/", "toy.3"));
  CHECK(elsewhere.resumed() == 10);

  flip_bit(store + "/step-00000020/" + kOnlyFile, 300);
  const auto before = contents_of(store);
  const Error damaged = error_of_start(dir.file("new"), store + "/step-00000020");
  CHECK(damaged.exit_code() == 4);
  CHECK_THAT(damaged.what(), Contains("checkpoint.load names " + store + "/step-00000020") && Contains("checksum"));
  const Error missing = error_of_start(dir.file("new"), store + "/step-00000025");
  CHECK(missing.exit_code() == 4);
  CHECK_THAT(missing.what(), Contains("is not a directory"));
  const Error parent = error_of_start(dir.file("new"), store);
  CHECK(parent.exit_code() == 4);
  CHECK_THAT(parent.hint(), Contains(store + "/step-00000030"));
  CHECK(contents_of(store) == before);
}

TEST_CASE("an interrupted first save is no checkpoint: the run starts anew, with a warning") {
  const TempDir dir;
  make_directories(dir.file("c/step-00000010.tmp-toy.0"), Kind::kBug);
  CapturedLog captured;
  CHECK(!ToyRun(dir.file("c")).resumed());
  CHECK_THAT(captured.text(), Contains("no committed checkpoint, only unfinished saves (step-00000010.tmp-toy.0)"));
}

TEST_CASE("a directory with nothing but checkpoints set aside is not started over") {
  const TempDir dir;
  make_directories(dir.file("c/step-00000010.set-aside-toy.0"), Kind::kBug);
  for (const std::string load : {"auto", "none"}) {
    const Error error = error_of_start(dir.file("c"), load);
    CHECK(error.exit_code() == 4);
    CHECK_THAT(error.what(), Contains("step-00000010.set-aside-toy.0"));
  }
}

TEST_CASE("only whole names of steps are steps") {
  CHECK(step_name(20) == "step-00000020");
  CHECK(step_name(1234567890123) == "step-1234567890123");
  CHECK(parse_step_name("step-00000020") == 20);
  CHECK(parse_step_name("step-1234567890123") == 1234567890123);
  for (const char* name : {"step-20", "step-000000020", "step-00000020.tmp-a", "step-0000002a", "step-",
                           "Step-00000020", "step--0000020", "step-99999999999999999999", ".trash-step-00000020-a"}) {
    CHECK(!parse_step_name(name));
  }
}

TEST_CASE("a checkpoint of another model is refused, naming the differences") {
  const TempDir dir;
  write_three(dir.file("c"));
  CheckpointReader reader = CheckpointReader::open(dir.file("c/step-00000010"));
  const auto comm = make_single_comm();
  ParamTable table = toy_table();
  table.units[0].matrices[0].parts[0].shape = {38, 9};
  table.units[1].matrices[1].parts[0].name = "up";
  ToyState other(ShardPlace{}, table);
  CHECK_THROWS_WITH(load(*comm, reader, other.place(), other.units()),
                    Contains("holds another model") && Contains("'embed.weight' is (37, 9) there and (38, 9) here") &&
                        Contains("it has no 'up'") && Contains("it has 'down', this model has not"));
  CHECK_THROWS_WITH(reader.read("momentum", "q", 0, {}), Contains("has no 'momentum' of 'q'"));
  CHECK_THROWS_WITH(reader.read("master", "z", 0, {}), Contains("has no parameter 'z'"));
}
