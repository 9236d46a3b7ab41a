// Saving: which checkpoints are kept or deleted, and the behaviour when the disk refuses a write.
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <thread>

#include "checkpoint/toy_run.h"
#include "support/captured_log.h"

using namespace tokamak;
using Catch::Contains;

namespace {

std::vector<int64_t> steps_in(const std::string& directory) { return CheckpointStore(directory).steps(); }

// Files can grow only to this size. Then writes fail with EFBIG, in the middle of a file as with ENOSPC.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

}  // namespace

TEST_CASE("keep_latest checkpoints stay, the newest among them, and 0 keeps all") {
  for (const int64_t keep : {0, 1, 2, 3}) {
    const TempDir dir;
    ToyRun run(dir.file("c"), toy_setup(keep));
    for (int64_t step = 10; step <= 50; step += 10) {
      REQUIRE(run.save(step).committed);
      const auto steps = steps_in(dir.file("c"));
      CHECK(steps.back() == step);
      CHECK(static_cast<int64_t>(steps.size()) == (keep == 0 ? step / 10 : std::min(keep, step / 10)));
    }
    CHECK(list_directory(dir.file("c"), Kind::kBug).size() == steps_in(dir.file("c")).size() + 1);  // and .lock
  }
}

TEST_CASE("checkpoints that were damaged since they were committed do not count among those kept, and stay") {
  const auto [what, damage] = GENERATE(table<std::string, void (*)(const std::string&)>({
      {"a bit", [](const std::string& step) { flip_bit(step + "/" + kOnlyFile, 5000); }},
      {"a file's end", [](const std::string& step) { truncate_by_one(step + "/" + kOnlyFile); }},
      {"a file", [](const std::string& step) { remove_file(step + "/" + kOnlyFile, Kind::kBug); }},
      {"the manifest", [](const std::string& step) { flip_bit(step + "/" + kManifestName, 100); }},
  }));
  INFO(what);
  const TempDir dir;
  ToyRun run(dir.file("c"), toy_setup(2));
  run.save(10);
  run.save(20);
  damage(dir.file("c/step-00000020"));
  CapturedLog captured;
  run.save(30);
  CHECK(steps_in(dir.file("c")) == std::vector<int64_t>{10, 20, 30});
  CHECK_THAT(captured.text(), Contains(dir.file("c/step-00000020") + " is damaged and does not count"));
  run.save(40);
  CHECK(steps_in(dir.file("c")) == std::vector<int64_t>{20, 30, 40});
}

TEST_CASE("with keep_latest 1 the newest is read back before the one before it goes") {
  const TempDir dir;
  ToyRun run(dir.file("c"), toy_setup(1));
  run.save(10);
  run.checkpointer().stop_reading();
  run.save(20);
  CHECK(steps_in(dir.file("c")) == std::vector<int64_t>{10, 20});
}

TEST_CASE("a run that has to stop reads nothing back, and removes only what it may; its next start catches up") {
  const TempDir dir;
  const std::string store = dir.file("c");
  {
    ToyRun run(store, toy_setup(2));
    for (const int64_t step : {10, 20, 30}) run.save(step);
    REQUIRE(steps_in(store) == std::vector<int64_t>{20, 30});
    run.checkpointer().stop_reading();
    CHECK(run.save(40).committed);
    CHECK(steps_in(store) == std::vector<int64_t>{20, 30, 40});
  }
  const bool damaged = GENERATE(false, true);
  if (damaged) flip_bit(store + "/step-00000030/" + kOnlyFile, 5000);
  ToyRun next(store, toy_setup(2, "auto", "toy.2"));
  CHECK(next.save(40).bytes == 0);
  CHECK(steps_in(store) == (damaged ? std::vector<int64_t>{20, 30, 40} : std::vector<int64_t>{30, 40}));
}

TEST_CASE("the first save sets aside what this start has left behind, and never deletes it") {
  const TempDir dir;
  const std::string store = dir.file("c");
  {
    ToyRun run(store);
    for (const int64_t step : {10, 20, 30}) run.save(step);
  }
  flip_bit(store + "/step-00000020/" + kOnlyFile, 300);
  flip_bit(store + "/step-00000030/" + kOnlyFile, 300);
  const std::string damaged = read_text(store + "/step-00000030/" + kOnlyFile, Kind::kBug);
  ToyRun run(store, toy_setup(1, "auto", "toy.2"));
  REQUIRE(run.resumed() == 10);
  CapturedLog captured;
  CHECK(run.save(20).committed);
  CHECK_THAT(captured.text(), Contains("set aside " + store + "/step-00000020.set-aside-toy.2") &&
                                  Contains("set aside " + store + "/step-00000030.set-aside-toy.2"));
  CHECK(steps_in(store) == std::vector<int64_t>{20});
  CHECK(read_text(store + "/step-00000030.set-aside-toy.2/" + kOnlyFile, Kind::kBug) == damaged);
  CHECK(CheckpointStore(store).set_aside().size() == 2);
}

TEST_CASE("the first save sets damaged checkpoints aside, of earlier steps than its own too, and keeps the sound one") {
  const TempDir dir;
  const std::string store = dir.file("c");
  {
    ToyRun run(store);
    for (const int64_t step : {10, 20, 30}) run.save(step);
  }
  flip_bit(store + "/step-00000020/" + kOnlyFile, 300);
  flip_bit(store + "/step-00000030/" + kOnlyFile, 300);
  ToyRun run(store, toy_setup(2, "auto", "toy.2"));
  REQUIRE(run.resumed() == 10);
  CHECK(run.save(40).committed);
  CHECK(steps_in(store) == std::vector<int64_t>{10, 40});
  CHECK(CheckpointStore(store).set_aside().size() == 2);
}

TEST_CASE("a run that was sent back to an older checkpoint continues from there, not from what it left") {
  const TempDir dir;
  const std::string store = dir.file("c");
  {
    ToyRun run(store);
    for (const int64_t step : {10, 20, 30}) run.save(step);
  }
  {
    CapturedLog captured;
    ToyRun run(store, toy_setup(2, store + "/step-00000010", "toy.2"));
    CHECK_THAT(captured.text(), Contains("step-00000030 is later than what this run starts from"));
    CHECK(run.save(15).committed);
  }
  CHECK(steps_in(store) == std::vector<int64_t>{10, 15});
  CHECK(ToyRun(store, toy_setup(2, "auto", "toy.3")).resumed() == 15);
}

TEST_CASE("a step that is already committed is not written again") {
  const TempDir dir;
  {
    ToyRun run(dir.file("c"));
    CHECK(run.save(10).bytes > 0);
    const auto before = contents_of(dir.file("c"));
    const SaveOutcome again = run.save(10);
    CHECK(again.committed);
    CHECK(again.bytes == 0);
    CHECK(contents_of(dir.file("c")) == before);
  }
  for (const std::string& load : {std::string("auto"), dir.file("c/step-00000010/")}) {
    ToyRun run(dir.file("c"), toy_setup(0, load, "toy.2"));
    CHECK(run.save(10).bytes == 0);
  }
  CHECK(CheckpointStore(dir.file("c")).set_aside().empty());
}

TEST_CASE("a start removes what earlier starts left unfinished, and nothing else") {
  const TempDir dir;
  const std::string store = dir.file("c");
  ToyRun(store).save(10);
  for (const char* name :
       {"step-00000020.tmp-toy.0", ".trash-step-00000005-toy.0", "notes", "step-00000030.set-aside-x"}) {
    make_directories(store + "/" + name, Kind::kBug);
    write_text_atomically(store + "/" + name + "/file", "text", Kind::kBug);
  }
  write_text_atomically(store + "/.probe-toy.0", "", Kind::kBug);
  ToyRun run(store, toy_setup(1, "auto", "toy.2"));
  CHECK(list_directory(store, Kind::kBug) ==
        std::vector<std::string>{".lock", "notes", "step-00000010", "step-00000030.set-aside-x"});
}

TEST_CASE("a link in the store is unlinked, never entered: what it leads to stays as it is") {
  const TempDir dir;
  const std::string store = dir.file("c"), victim = dir.file("victim");
  ToyRun(victim).save(20);
  ToyRun(store).save(10);
  for (const char* name : {"step-00000009.tmp-x", ".trash-step-00000005-x"}) {
    std::filesystem::create_symlink(victim, store + "/" + name);
  }
  std::filesystem::create_symlink(dir.file("nowhere"), store + "/step-00000008.tmp-x");
  ToyRun run(store, toy_setup(1, "auto", "toy.2"));
  CHECK(list_directory(store, Kind::kBug) == std::vector<std::string>{".lock", "step-00000010"});
  CHECK(list_directory(victim, Kind::kBug) == std::vector<std::string>{".lock", "step-00000020"});
  // The link has the name of a later save's directory.
  std::filesystem::create_symlink(victim, store + "/step-00000030.tmp-toy.2");
  CHECK(run.save(30).committed);
  CHECK(steps_in(victim) == std::vector<int64_t>{20});
  CHECK(std::filesystem::is_directory(entry_at(store + "/step-00000030")));
}

TEST_CASE("a store that every user may change is warned of") {
  const TempDir dir;
  make_directories(dir.file("c"), Kind::kBug);
  const auto warning = [&](mode_t mode) {
    REQUIRE(::chmod(dir.file("c").c_str(), mode) == 0);
    CapturedLog captured;
    const ToyRun run(dir.file("c"));
    return captured.text();
  };
  CHECK_THAT(warning(0777), Contains(dir.file("c") + " is writable by every user"));
  CHECK_THAT(warning(01777), !Contains("writable by every user"));
  CHECK_THAT(warning(0755), !Contains("writable by every user"));
}

TEST_CASE(
    "what a removal has left half-way is removed at this start's next save, also where all checkpoints are kept") {
  const TempDir dir;
  const std::string store = dir.file("c");
  for (const int64_t keep : {0, 1}) {
    ToyRun run(store, toy_setup(keep, "auto", str("toy.", keep)));
    make_directories(store + "/.trash-step-00000005-toy.1/inside", Kind::kBug);
    CHECK(run.save(10 + keep).committed);
    for (const std::string& name : list_directory(store, Kind::kBug)) CHECK_THAT(name, !Contains("trash"));
  }
}

TEST_CASE("a disk that ends in the middle of a file refuses the save, and the next one works") {
  const TempDir dir;
  const std::string store = dir.file("c");
  ToyRun run(store);
  REQUIRE(run.save(10).committed);
  const auto before = contents_of(store);
  CapturedLog captured;
  SaveOutcome outcome;
  {
    const FileSizeLimit limit(5000);
    outcome = run.save(20);
  }
  CHECK(!outcome.committed);
  CHECK_THAT(outcome.reason, Contains("step-00000020.tmp-toy.1/" + kOnlyFile) && Contains("File too large"));
  CHECK_THAT(captured.text(),
             Contains("checkpoint of step 20 was not written") && Contains("older ones are as they were"));
  CHECK(contents_of(store) == before);
  CHECK(run.save(20).committed);
  CHECK(CheckpointReader::open(store + "/step-00000020").file_problem(0).empty());
}

TEST_CASE("a full file system is noticed before anything is written") {
  const TempDir dir;
  const std::string store = dir.file("small");
  make_directories(store, Kind::kBug);
  if (::mount("tmpfs", store.c_str(), "tmpfs", 0, "size=64k") != 0) {
    WARN("skipped: mounting a small file system is not permitted here");
    return;
  }
  {
    CapturedLog captured;
    ToyRun run(store);
    REQUIRE(run.save(10).committed);
    // Three pages are left over. Weights and moments fit, but not the 1.2 times that a save requires.
    const int64_t bytes = free_bytes(store, Kind::kBug) - 3 * 4096;
    write_text_atomically(store + "/filler", std::string(static_cast<size_t>(bytes), ' '), Kind::kBug);
    const auto before = contents_of(store);
    const SaveOutcome outcome = run.save(20);
    CHECK(!outcome.committed);
    CHECK_THAT(outcome.reason, Contains("free, a checkpoint of") && Contains("needs"));
    CHECK(contents_of(store) == before);
    remove_file(store + "/filler", Kind::kBug);
    CHECK(run.save(20).committed);
  }
  ::umount(store.c_str());
}

TEST_CASE("a checkpoint directory that has gone refuses the save") {
  const TempDir dir;
  ToyRun run(dir.file("c"));
  REQUIRE(run.save(10).committed);
  remove_tree(dir.file("c"), Kind::kBug);
  CapturedLog captured;
  const SaveOutcome outcome = run.save(20);
  CHECK(!outcome.committed);
  CHECK_THAT(outcome.reason, Contains(dir.file("c")));
}

TEST_CASE("a save runs beside training, which may change everything but the copy that is being saved") {
  const TempDir dir;
  ToyRun run(dir.file("c"));
  ToyState snapshot{ShardPlace{}};
  snapshot.fill(10);
  run.checkpointer().begin_save(toy_point(10), snapshot.place(), snapshot.units());
  CHECK(run.checkpointer().saving());
  run.state().fill(11);  // training goes on
  std::optional<SaveOutcome> outcome;
  while (!(outcome = run.checkpointer().poll_save())) std::this_thread::yield();
  CHECK(outcome->committed);
  CHECK(outcome->step == 10);
  CHECK(!run.checkpointer().saving());
  const ToyRun next(dir.file("d"), toy_setup(0, dir.file("c/step-00000010"), "toy.2"));
  CHECK(next.whole());
}

TEST_CASE("slices whose memory lies in several places are saved and loaded as those in one") {
  // Cuts slices within a matrix, between matrices and in the padding.
  const auto cut = [](std::vector<UnitSlices> units) {
    for (UnitSlices& unit : units) {
      for (KindSlice& slice : unit.slices) {
        const Tensor whole = slice.parts.at(0);
        const int64_t third = whole.count() / 3;
        slice.parts = {whole.flat(0, 1), whole.flat(1, third), whole.flat(third, whole.count())};
      }
    }
    return units;
  };
  const TempDir dir;
  ToyRun run(dir.file("c"));
  run.state().fill(10);
  REQUIRE(save_and_wait(run.checkpointer(), 10, run.state().place(), cut(run.state().units())).committed);
  const std::string saved = dir.file("c/step-00000010");
  CHECK(ToyRun(dir.file("d"), toy_setup(0, saved, "toy.2")).whole());
  CheckpointReader reader = CheckpointReader::open(saved);
  const auto comm = make_single_comm();
  for (const ShardPlace& place : {ShardPlace{}, ShardPlace{1, 3, true}}) {
    ToyState state(place);
    load(*comm, reader, place, cut(state.units()));
    CHECK(state.is(10));
  }
}

TEST_CASE("a commit that may keep all removes nothing, the next one catches up") {
  const TempDir dir;
  ToyRun run(dir.file("c"), toy_setup(1));
  REQUIRE(run.save(10).committed);
  run.state().fill(20);
  run.checkpointer().begin_save(toy_point(20), run.state().place(), run.state().units(), Retention::kKeepAll);
  CHECK(run.checkpointer().finish_save().committed);
  CHECK(steps_in(dir.file("c")) == std::vector<int64_t>{10, 20});
  run.save(30);
  CHECK(steps_in(dir.file("c")) == std::vector<int64_t>{30});
}

TEST_CASE("saves out of order are a bug, and found") {
  const TempDir dir;
  ToyRun run(dir.file("c"));
  REQUIRE(run.save(20).committed);
  CHECK_THROWS_WITH(run.save(10), Contains("step 10 after 20"));
}
