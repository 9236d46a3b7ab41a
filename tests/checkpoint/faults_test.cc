// Every operation of a save, one after another, is the one that fails, or the last one before a kill or a power loss.
// After each, every checkpoint that was reported as committed exists, and every existing one is whole.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "checkpoint/choose.h"
#include "checkpoint/fault_injection.h"
#include "checkpoint/toy_run.h"
#include "support/captured_log.h"

using namespace tokamak;

namespace {

constexpr int64_t kKeep = 2;

// The child reports its saves to the parent in shared memory.
class Reported {
 public:
  Reported()
      : step_(static_cast<int64_t*>(
            ::mmap(nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~Reported() { ::munmap(step_, sizeof(int64_t)); }
  Reported(const Reported&) = delete;
  Reported& operator=(const Reported&) = delete;

  int64_t step() const { return *step_; }
  void set(int64_t step) { *step_ = step; }

 private:
  int64_t* step_;
};

// Forks a process that starts in `store` and saves steps 10, 20 and 30. Returns false if it dies before the end.
bool run_child(const std::string& store, const FaultPlan& plan, Reported& reported) {
  reported.set(0);
  const pid_t child = ::fork();
  if (child == 0) {
    log::configure(0, 1, log::Level::kOff);
    arm(plan);
    ToyRun run(store, toy_setup(kKeep));
    for (const int64_t step : {10, 20, 30}) {
      if (run.save(step).committed) reported.set(step);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status)) {
    REQUIRE(WEXITSTATUS(status) == 0);
    return true;
  }
  REQUIRE((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
  return false;
}

void check_what_is_left(const std::string& store, int64_t reported) {
  for (const int64_t step : CheckpointStore(store).steps()) {
    const CheckpointReader reader = CheckpointStore(store).open(step);
    REQUIRE(reader.file_problem(0).empty());
  }
  ToyRun next(store, toy_setup(kKeep, "auto", "toy.2"));
  REQUIRE(next.resumed().value_or(0) >= reported);
  REQUIRE(next.whole() == next.resumed().has_value());
  const int64_t step = next.resumed().value_or(0) + 10;
  REQUIRE(next.save(step).committed);
  REQUIRE(CheckpointStore(store).steps().back() == step);
  REQUIRE(CheckpointStore(store).disposable().empty());
}

// A path such as a run's: neither it nor its parent directory exists before the first start.
std::string store_in(const TempDir& dir) { return dir.file("run/c"); }

// Returns the operations of run_child() without a fault.
std::vector<std::string> clean_trace() {
  const TempDir dir;
  arm({dir.path(), Fault::kNone, 0, 0});
  ToyRun run(store_in(dir), toy_setup(kKeep));
  for (const int64_t step : {10, 20, 30}) REQUIRE(run.save(step).committed);
  disarm();
  return operations();
}

// Injects `fault` at each operation that it can hit, in turn. Returns the number of these operations.
int64_t sweep(Fault fault) {
  CapturedLog quiet;
  Reported reported;
  const std::vector<std::string> trace = clean_trace();
  int64_t struck = 0;
  for (size_t i = 0; i < trace.size(); ++i) {
    if (fault == Fault::kTornWrite && !starts_with(trace[i], "write ")) continue;
    const TempDir dir;
    INFO("fault " << static_cast<int>(fault) << " at operation " << i + 1 << ", like " << trace[i]);
    REQUIRE(!run_child(store_in(dir), {dir.path(), fault, static_cast<int64_t>(i) + 1, 0}, reported));
    check_what_is_left(store_in(dir), reported.step());
    ++struck;
  }
  return struck;
}

int64_t index_of(const std::vector<std::string>& trace, const std::string& operation) {
  for (size_t i = 0; i < trace.size(); ++i) {
    if (trace[i] == operation) return static_cast<int64_t>(i) + 1;
  }
  INFO(join(trace, "\n"));
  FAIL("there is no '" << operation << "'");
  return 0;
}

}  // namespace

TEST_CASE("killed before any operation of three saves, a run loses nothing that was committed") {
  CHECK(sweep(Fault::kKill) > 60);
}

TEST_CASE("killed in the middle of any write, a run loses nothing that was committed") {
  CHECK(sweep(Fault::kTornWrite) > 9);
}

TEST_CASE("a power loss that takes all that was not synced takes nothing that was committed") {
  CHECK(sweep(Fault::kPowerLoss) > 60);
}

TEST_CASE("a power loss that takes the data but not the names leaves no checkpoint that looks whole") {
  CHECK(sweep(Fault::kPowerLossOfData) > 60);
}

TEST_CASE("any operation of a save may fail: it is refused or committed, and the next one works") {
  CapturedLog quiet;
  for (const int error : {ENOSPC, EIO, EDQUOT}) {
    bool struck = true;
    for (int64_t at = 1; struck; ++at) {
      const TempDir dir;
      const std::string store = dir.file("c");
      ToyRun run(store, toy_setup(kKeep));
      REQUIRE(run.save(10).committed);
      REQUIRE(run.save(20).committed);
      arm({dir.path(), Fault::kError, at, error});
      const SaveOutcome outcome = run.save(30);
      disarm();
      const std::vector<std::string> trace = operations();
      struck = static_cast<int64_t>(trace.size()) >= at;
      INFO(error << " at operation " << at << ": " << (struck ? trace[static_cast<size_t>(at) - 1] : "none"));
      // An error up to the sync of the rename must refuse the save; later operations only tidy up.
      const std::string last = "fsync " + store;
      const bool before_commit =
          struck && std::find(trace.begin(), trace.begin() + at - 1, last) == trace.begin() + at - 1;
      REQUIRE(outcome.committed == !before_commit);
      REQUIRE(outcome.reason.empty() == outcome.committed);
      for (const int64_t step : CheckpointStore(store).steps()) {
        REQUIRE(CheckpointStore(store).open(step).file_problem(0).empty());
      }
      REQUIRE(exists(store + "/step-00000020/manifest.json"));
      REQUIRE(run.save(40).committed);
      REQUIRE(CheckpointStore(store).open(40).file_problem(0).empty());
    }
  }
}

TEST_CASE("a write that takes only half of its bytes is continued") {
  CapturedLog quiet;
  bool struck = true;
  for (int64_t at = 1; struck; ++at) {
    const TempDir dir;
    ToyRun run(dir.file("c"));
    arm({dir.path(), Fault::kShortWrite, at, 0});
    REQUIRE(run.save(10).committed);
    disarm();
    struck = static_cast<int64_t>(operations().size()) >= at;
    REQUIRE(CheckpointStore(dir.file("c")).open(10).file_problem(0).empty());
  }
}

TEST_CASE("a save syncs each file, then the directory, renames it, and syncs the parent, in this order") {
  CapturedLog quiet;
  const TempDir dir;
  const std::string store = dir.file("c");
  ToyRun run(store, toy_setup(1));
  run.save(10);
  arm({dir.path(), Fault::kNone, 0, 0});
  run.save(20);
  disarm();
  const std::vector<std::string> trace = operations();
  const std::string unfinished = store + "/step-00000020.tmp-toy.1";
  const int64_t file = index_of(trace, "fsync " + unfinished + "/" + kOnlyFile);
  const int64_t manifest = index_of(trace, "open " + unfinished + "/manifest.json");
  const int64_t manifest_synced = index_of(trace, "fsync " + unfinished + "/manifest.json");
  const int64_t directory = index_of(trace, "fsync " + unfinished);
  const int64_t renamed = index_of(trace, "rename " + unfinished);
  const int64_t parent = index_of(trace, "fsync " + store);
  const int64_t trash = index_of(trace, "rename " + store + "/step-00000010");
  CHECK(file < manifest);
  CHECK(manifest < manifest_synced);
  CHECK(manifest_synced < directory);
  CHECK(directory < renamed);
  CHECK(renamed < parent);
  CHECK(parent < trash);
}

TEST_CASE("what an earlier start left unfinished loses its name before the first of its files") {
  CapturedLog quiet;
  const TempDir dir;
  const std::string store = dir.file("c");
  ToyRun(store).save(10);
  const std::string unfinished = store + "/step-00000020.tmp-toy.0";
  make_directories(unfinished, Kind::kBug);
  write_text_atomically(unfinished + "/" + kOnlyFile, "text", Kind::kBug);
  arm({dir.path(), Fault::kNone, 0, 0});
  const ToyRun run(store, toy_setup(0, "auto", "toy.2"));
  disarm();
  const std::vector<std::string> trace = operations();
  // Otherwise its writer, if alive, could give half of the files the name of a checkpoint.
  index_of(trace, "rename " + unfinished);
  CHECK(std::none_of(trace.begin(), trace.end(),
                     [&](const std::string& operation) { return starts_with(operation, "unlinkat " + unfinished); }));
  CHECK(!exists(unfinished));
}

TEST_CASE("a lock file that is replaced just before it is locked is not the one that counts") {
  const TempDir dir;
  std::optional<DirectoryLock> other;
  before_next_flock([&] {
    remove_file(dir.file(".lock"), Kind::kBug);
    other.emplace(dir.path(), Incarnation{.id = "other"}, 0);
    other->claim();
  });
  CHECK_THROWS_WITH(DirectoryLock(dir.path(), Incarnation{.id = "late"}, 0), Catch::Contains("incarnation other"));
}

namespace {

auto start_of_job(int64_t requeues, const std::string& load) {
  auto setup = toy_setup(0, load);
  setup.incarnation = {.id = str("job7.", requeues), .job = "7", .requeues = requeues};
  return setup;
}

}  // namespace

TEST_CASE("a stale writer that thaws anywhere after it has looked at the fence touches nothing of its successor") {
  CapturedLog quiet;
  bool struck = true;
  int64_t renames = 0;
  for (int64_t at = 1; struck; ++at) {
    const TempDir dir;
    const std::string store = dir.file("c");
    {
      ToyRun before(store);
      for (const int64_t step : {10, 20, 30}) REQUIRE(before.save(step).committed);
    }
    // The stale run goes back to step 10 and saves step 15, so it sets aside steps 20 and 30. It stalls before its
    // `at`-th rename until a new start of the job has taken over and saved steps 15, 20 and 30.
    ToyRun stale(store, start_of_job(0, store + "/step-00000010"));
    std::optional<ToyRun> successor;
    before_rename(at, [&] {
      successor.emplace(store, start_of_job(1, store + "/step-00000010"));
      for (const int64_t step : {15, 20, 30}) REQUIRE(successor->save(step).committed);
    });
    try {
      const SaveOutcome outcome = stale.save(15);
      struck = successor.has_value();
      REQUIRE(outcome.committed == !struck);
    } catch (const Error& error) {
      CHECK_THAT(error.what(), Catch::Contains("a later start of this job has taken over"));
    }
    before_rename(0, nullptr);
    if (!struck) break;
    ++renames;
    INFO("stalled before rename " << at);
    for (const int64_t step : {15, 20, 30}) {
      const CheckpointReader reader = CheckpointStore(store).open(step);
      CHECK(reader.file_problem(0).empty());
      CHECK(reader.manifest().incarnation == "job7.1");
    }
    CHECK(successor->save(40).committed);
    CHECK(CheckpointStore(store).steps() == std::vector<int64_t>{10, 15, 20, 30, 40});
  }
  CHECK(renames == 5);  // two for each step that is set aside, and the last one
}

TEST_CASE("killed while it sets later steps aside, a run loses none of them") {
  CapturedLog quiet;
  Reported reported;
  for (const int64_t at : {1, 2, 3, 4, 5}) {
    const TempDir dir;
    const std::string store = dir.file("c");
    {
      ToyRun before(store);
      for (const int64_t step : {10, 20, 30}) REQUIRE(before.save(step).committed);
    }
    const pid_t child = ::fork();
    if (child == 0) {
      log::configure(0, 1, log::Level::kOff);
      ToyRun run(store, toy_setup(0, store + "/step-00000010", "toy.2"));
      before_rename(at, [] { ::kill(::getpid(), SIGKILL); });
      run.save(15);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));
    const ToyRun next(store, toy_setup(0, "auto", "toy.3"));
    INFO("killed before rename " << at);
    CHECK(next.whole());
    const CheckpointStore there(store);
    CHECK(there.steps().size() + there.set_aside().size() == 3);
    CHECK(there.disposable().empty());
  }
}
