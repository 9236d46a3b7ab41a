#include "doctor/checks.h"

#include <sched.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.h"
#include "doctor/planted.h"
#include "support/ranks.h"
#include "support/temp_dir.h"

using namespace tokamak;
using namespace tokamak::doctor;

namespace {

constexpr DiskRateOptions kShortRate{.bytes = 1 << 20, .seconds = 10};

}  // namespace

RANKS_CASE("a sound directory is measured by all ranks, created or not, and left as it was") {
  const TempDir own;
  const std::string path = shared_path(world.comm(), own);
  for (const std::string& directory : {path, path + "/run/checkpoints"}) {
    const CheckResult result =
        check_disk(world.comm(), a_host_each(world.size()), {.directory = directory, .rate = kShortRate});
    CHECK(result.status != Status::kFail);
    for (const Facts& facts : result.ranks) {
      CHECK(facts.number("write_bytes_per_second") > 0);
      CHECK(facts.number("read_bytes_per_second") > 0);
      CHECK(facts.number("finished") == 1);
      CHECK(facts.number("same_directory") == 1);
    }
    for (size_t rank = 1; rank < result.ranks.size(); ++rank) CHECK(result.ranks[rank].number("sees_lock") == 1);
    world.comm().barrier();
    CHECK(std::filesystem::is_empty(path));
    world.comm().barrier();
  }
}

RANKS_CASE("too little free space for the run's checkpoints fails, with the numbers") {
  const TempDir own;
  DiskOptions options{
      .directory = shared_path(world.comm(), own), .checkpoint_bytes = 100 << 20, .keep = 2, .rate = kShortRate};
  options.free_bytes = [](const std::string&) { return int64_t{239} << 20; };
  const CheckResult small = check_disk(world.comm(), a_host_each(world.size()), options);
  CHECK(small.status == Status::kFail);
  CHECK(small.kind == Kind::kCheckpoint);
  CHECK(small.notes.size() == 1);
  CHECK(says(small, "fail : "));  // no host's fault
  CHECK(says(small, "239 MiB free, and the run needs 240 MiB"));
  options.free_bytes = [](const std::string&) { return int64_t{200} << 20; };
  if (world.rank() == 0) {
    make_directories(options.directory + "/checkpoints/step-1", Kind::kBug);
    write_text_atomically(options.directory + "/checkpoints/step-1/shard", std::string(40 << 20, 'x'), Kind::kBug);
  }
  world.comm().barrier();
  CHECK(check_disk(world.comm(), a_host_each(world.size()), options).status != Status::kFail);
}

TEST_CASE("of free space, checkpoints that are there already count, but one more must always fit") {
  CHECK(needed_bytes(100, 2, 0) == 240);
  CHECK(needed_bytes(100, 2, 100) == 140);
  CHECK(needed_bytes(100, 2, 200) == 120);
  CHECK(needed_bytes(100, 0, 0) == 120);
}

RANKS_CASE("a rank that sees another directory is found, and its host named") {
  const TempDir own;
  const std::string shared = shared_path(world.comm(), own);
  const int last = world.size() - 1;
  // A working directory of this thread's own; paths are relative to it.
  REQUIRE(::unshare(CLONE_FS) == 0);
  const TempDir other;
  REQUIRE(::chdir(world.rank() == last && last > 0 ? other.path().c_str() : shared.c_str()) == 0);
  const CheckResult result = check_disk(world.comm(), a_host_each(world.size()),
                                        {.directory = ".", .seconds_to_appear = 0.2, .rate = kShortRate});
  REQUIRE(::chdir("/") == 0);
  if (last == 0) {
    CHECK(result.status != Status::kFail);
    return;
  }
  CHECK(result.status == Status::kFail);
  CHECK(result.kind == Kind::kCheckpoint);
  CHECK(result.notes.size() == 1);
  CHECK(says(result, str("fail n", last, ": rank ", last, " (n", last, ") does not see the files of rank 0")));
}

RANKS_CASE("a path that cannot be a directory fails with the reason, and is no host's fault") {
  const TempDir own;
  const std::string path = shared_path(world.comm(), own);
  if (world.rank() == 0) write_text_atomically(path + "/file", "x", Kind::kBug);
  world.comm().barrier();
  const CheckResult result =
      check_disk(world.comm(), a_host_each(world.size()), {.directory = path + "/file", .rate = kShortRate});
  CHECK(result.status == Status::kFail);
  CHECK(result.kind == Kind::kCheckpoint);
  CHECK(says(result, "fail : "));
}

TEST_CASE("rename and locks of a sound file system pass") {
  const TempDir directory;
  CHECK(wrong_with_rename(directory.path()).empty());
  CHECK(wrong_with_lock(directory.path()).empty());
}

TEST_CASE("a held lock is seen by a second descriptor until it is released") {
  const TempDir directory;
  {
    const HeldLock first(directory.file("lock"));
    CHECK(first.held());
    CHECK(!HeldLock(directory.file("lock")).held());
  }
  CHECK(HeldLock(directory.file("lock")).held());
}

TEST_CASE("a disk that is out of time is measured by what it wrote until then") {
  const TempDir directory;
  const DiskRate rate = measure_disk(directory.file("rate"), {.bytes = 8 << 20, .seconds = 0});
  CHECK(!rate.finished);
  CHECK(rate.bytes == 4096);
}
