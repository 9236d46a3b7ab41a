// Checkpoints among ranks. Any number of ranks loads what four have saved, and all ranks get one rank's error.
#include <catch2/catch.hpp>
#include <exception>

#include "checkpoint/fault_injection.h"
#include "checkpoint/toy_run.h"
#include "comm/collective_error.h"
#include "support/captured_log.h"
#include "support/ranks.h"

using namespace tokamak;
using Catch::Contains;

namespace {

// One directory for all ranks, which is removed when all ranks have finished with it.
class SharedDir {
 public:
  explicit SharedDir(Comm& comm) : comm_(comm) {
    if (comm_.rank() == 0) path_ = own_.path();
    comm_.broadcast(path_, 0);
  }
  ~SharedDir() {
    if (std::uncaught_exceptions() == 0) comm_.barrier();
  }

  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  Comm& comm_;
  TempDir own_;
  std::string path_;
};

// Captures standard error of all ranks until text(); rank 0 keeps the text.
class WarningsOfRanks {
 public:
  explicit WarningsOfRanks(Comm& comm) : comm_(comm) {
    if (comm_.rank() == 0) log_.emplace();
    comm_.barrier();
  }
  std::string text() {
    comm_.barrier();
    return log_ ? log_->text() : "";
  }

 private:
  Comm& comm_;
  std::optional<CapturedLog> log_;
};

ShardPlace place_in(const Comm& comm) { return {comm.rank(), comm.size(), true}; }

SaveOutcome save(Checkpointer& checkpointer, ToyState& state, int64_t step) {
  state.fill(step);
  return save_and_wait(checkpointer, step, state.place(), state.units());
}

// Runs `change` on rank 0 while the others wait.
template <class Change>
void on_rank_zero(Comm& comm, const Change& change) {
  comm.barrier();
  if (comm.rank() == 0) change();
  comm.barrier();
}

// Collective: returns the step that a start on `comm` resumes from. Checks that each rank has what was saved.
int64_t resumed_step(Comm& comm, const std::string& store, const std::string& id) {
  Checkpointer checkpointer(comm, store, toy_setup(0, "auto", id));
  auto reader = checkpointer.resume();
  if (!reader) return -1;
  ToyState state(place_in(comm));
  load(comm, *reader, state.place(), state.units());
  CHECK(state.is(reader->manifest().point.state.step));
  return reader->manifest().point.state.step;
}

}  // namespace

RANKS_CASE("what all ranks saved is loaded by any number of ranks, to the bit") {
  Comm& comm = world.comm();
  const SharedDir dir(comm);
  const std::string store = dir.file("c");
  {
    Checkpointer checkpointer(comm, store, toy_setup());
    CHECK(!checkpointer.resume());
    ToyState state(place_in(comm));
    const SaveOutcome outcome = save(checkpointer, state, 10);
    CHECK(outcome.committed);
    CHECK(outcome.bytes > 0);
  }
  CheckpointReader reader = CheckpointReader::open(store + "/step-00000010");
  CHECK(reader.manifest().world_size == comm.size());
  CHECK(static_cast<int>(reader.manifest().files.size()) == comm.size());
  // The reading world has one rank; the saved slices are those of a world of any size.
  const auto alone = make_single_comm();
  for (int count = 1; count <= 9; ++count) {
    for (int index = 0; index < count; ++index) {
      ToyState state(ShardPlace{index, count});
      load(*alone, reader, state.place(), state.units());
      CHECK(state.is(10));
    }
  }
  for (int ranks = 1; ranks <= comm.size(); ++ranks) {
    const bool takes_part = comm.rank() < ranks;
    const auto part = comm.split(takes_part ? 0 : 1);
    if (takes_part) CHECK(resumed_step(*part, store, "toy.2") == 10);
    comm.barrier();
  }
}

RANKS_CASE("any range of any parameter is read across the files that hold it") {
  Comm& comm = world.comm();
  const SharedDir dir(comm);
  {
    Checkpointer checkpointer(comm, dir.file("c"), toy_setup());
    checkpointer.resume();
    ToyState state(place_in(comm));
    REQUIRE(save(checkpointer, state, 10).committed);
  }
  CheckpointReader reader = CheckpointReader::open(dir.file("c/step-00000010"));
  const int64_t count = 37 * 9;
  int64_t wrong = 0;
  for (const auto& [first, length] :
       {std::pair<int64_t, int64_t>{0, count}, {63, 2}, {64, 1}, {127, 130}, {count, 0}}) {
    std::vector<float> out(static_cast<size_t>(length));
    reader.read("exp_avg", "embed.weight", first, out);
    for (int64_t i = 0; i < length; ++i) {
      wrong +=
          std::bit_cast<uint32_t>(out[static_cast<size_t>(i)]) != toy_bits(10, "exp_avg", "embed.weight", first + i);
    }
  }
  CHECK(wrong == 0);
  std::vector<float> too_many(2);
  CHECK_THROWS(reader.read("exp_avg", "embed.weight", count - 1, too_many));
}

RANKS_CASE("all ranks fall back alike when one file of the newest checkpoint is damaged") {
  Comm& comm = world.comm();
  const std::string file = shard_file_name(comm.size() - 1, comm.size());
  for (const int damage : {0, 1, 2, 3}) {
    const SharedDir dir(comm);
    const std::string store = dir.file("c");
    const std::string newest = store + "/step-00000030/";
    {
      Checkpointer checkpointer(comm, store, toy_setup());
      checkpointer.resume();
      ToyState state(place_in(comm));
      for (const int64_t step : {10, 20, 30}) REQUIRE(save(checkpointer, state, step).committed);
    }
    on_rank_zero(comm, [&] {
      if (damage == 0) flip_bit(newest + file, 1000);
      if (damage == 1) truncate_by_one(newest + file);
      if (damage == 2) remove_file(newest + file, Kind::kBug);
      if (damage == 3) remove_file(newest + "manifest.json", Kind::kBug);
    });
    WarningsOfRanks captured(comm);
    CHECK(resumed_step(comm, store, "toy.2") == 20);
    const std::string text = captured.text();
    if (comm.rank() == 0) {
      CHECK_THAT(text, Contains(newest + (damage == 3 ? "manifest.json" : file)));
      CHECK_THAT(text, Contains("falling back from step 30 to step 20"));
    }

    std::map<std::string, std::string> before;
    on_rank_zero(comm, [&] {
      flip_bit(store + "/step-00000010/" + file, 1000);
      flip_bit(store + "/step-00000020/" + file, 1000);
      before = contents_of(store);
    });
    WarningsOfRanks none_left(comm);
    try {
      resumed_step(comm, store, "toy.3");
      FAIL("a damaged checkpoint was loaded");
    } catch (const SharedError& error) {
      CHECK(error.exit_code() == 4);
      CHECK_THAT(error.what(), Contains("holds 3 checkpoints and none can be used"));
    }
    none_left.text();
    on_rank_zero(comm, [&] { CHECK(contents_of(store) == before); });
  }
}

RANKS_CASE("damage in any file of a checkpoint, written by any number of ranks, keeps the sound ones before it") {
  Comm& comm = world.comm();
  const std::vector<int64_t> all = {10, 20, 25, 30, 40};  // 20 is not known to be sound yet
  for (int writers = 1; writers <= comm.size(); ++writers) {
    for (const int readers : {1, comm.size()}) {
      const SharedDir dir(comm);
      const std::string store = dir.file("c");
      const auto run = [&](int ranks, int64_t keep, const std::string& id, const std::vector<int64_t>& steps) {
        const auto part = comm.split(comm.rank() < ranks ? 0 : 1);
        if (comm.rank() >= ranks) return;
        Checkpointer checkpointer(*part, store, toy_setup(keep, "auto", id));
        checkpointer.resume();
        ToyState state(place_in(*part));
        for (const int64_t step : steps) REQUIRE(save(checkpointer, state, step).committed);
      };
      run(writers, 0, "toy.1", {10, 20, 25, 30});
      on_rank_zero(comm, [&] { flip_bit(store + "/step-00000025/" + shard_file_name(writers - 1, writers), 1000); });
      run(readers, 3, "toy.2", {40});
      on_rank_zero(comm, [&] { CHECK(CheckpointStore(store).steps() == all); });
    }
  }
}

RANKS_CASE("a disk that is full on one rank refuses the save on all, and training goes on") {
  Comm& comm = world.comm();
  const SharedDir dir(comm);
  const std::string store = dir.file("c");
  Checkpointer checkpointer(comm, store, toy_setup());
  checkpointer.resume();
  ToyState state(place_in(comm));
  REQUIRE(save(checkpointer, state, 10).committed);
  std::map<std::string, std::string> before;
  on_rank_zero(comm, [&] { before = contents_of(store); });
  WarningsOfRanks captured(comm);
  const int full = comm.size() - 1;
  const std::string file = store + "/step-00000020.tmp-toy.1/" + shard_file_name(full, comm.size());
  // The first operation on the file creates it, the second writes to it.
  on_rank_zero(comm, [&] { arm({.under = file, .fault = Fault::kError, .at = 2, .error = ENOSPC}); });
  const SaveOutcome outcome = save(checkpointer, state, 20);
  on_rank_zero(comm, [] { disarm(); });
  captured.text();
  CHECK(!outcome.committed);
  CHECK_THAT(outcome.reason, Contains(shard_file_name(full, comm.size())) && Contains("No space left on device"));
  if (comm.size() > 1) CHECK_THAT(outcome.reason, Contains(str("rank ", full, ": ")));
  on_rank_zero(comm, [&] { CHECK(contents_of(store) == before); });
  CHECK(save(checkpointer, state, 20).committed);
}

RANKS_CASE("with hybrid sharding the first replica writes and every rank loads") {
  Comm& comm = world.comm();
  if (comm.size() % 2 != 0) return;
  const SharedDir dir(comm);
  const int shards = comm.size() / 2;
  const ShardPlace place{comm.rank() % shards, shards, comm.rank() < shards};
  ToyState state(place);
  {
    Checkpointer checkpointer(comm, dir.file("c"), toy_setup());
    checkpointer.resume();
    REQUIRE(save(checkpointer, state, 10).committed);
  }
  CheckpointReader reader = CheckpointReader::open(dir.file("c/step-00000010"));
  CHECK(static_cast<int>(reader.manifest().files.size()) == shards);
  CHECK(reader.manifest().world_size == comm.size());
  state.forget();
  load(comm, reader, place, state.units());
  CHECK(state.is(10));
}

RANKS_CASE("a slice that two ranks write, or none, is a bug, and found on every rank") {
  Comm& comm = world.comm();
  if (comm.size() == 1) return;
  const SharedDir dir(comm);
  Checkpointer checkpointer(comm, dir.file("c"), toy_setup());
  checkpointer.resume();
  const int next = (comm.rank() + 1) % comm.size();
  ToyState state(ShardPlace{next == 0 ? 1 : next, comm.size()});
  CHECK_THROWS_WITH(save(checkpointer, state, 10), Contains("ranks write one slice"));
}
