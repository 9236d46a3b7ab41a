// Program, config and clocks must be equal on all ranks. Ranks compare them as facts.
#include <catch2/catch.hpp>
#include <limits>

#include "base/clock.h"
#include "doctor/checks.h"
#include "doctor/planted.h"
#include "support/ranks.h"

using namespace tokamak;
using namespace tokamak::doctor;

TEST_CASE("facts travel as they are: numbers to the bit, texts with any character") {
  Facts facts;
  facts.set("whole", std::numeric_limits<int64_t>::min());
  facts.set("real", 0.1 + 0.2);
  facts.set("text", std::string("a\nb\0c", 5));
  facts.set("text", std::string("x\ny\0z", 5));  // set again
  const Facts read = Facts::decode(facts.encode());
  CHECK(read.all() == facts.all());
  CHECK(read.number("real") == 0.1 + 0.2);
  CHECK(read.text("text") == std::string("x\ny\0z", 5));
  CHECK(read.text("missing").empty());
}

TEST_CASE("GPUs of one model are equal devices, whatever their number; other devices are what they say") {
  CHECK(device_model("GPU 0, H100, 80 GiB") == device_model("GPU 13, H100, 80 GiB"));
  CHECK(device_model("GPU 0, H100, 80 GiB") != device_model("GPU 0, A100, 80 GiB"));
  CHECK(device_model("CPU, AMD EPYC, 2 threads") == "CPU, AMD EPYC, 2 threads");
}

RANKS_CASE("what a rank cannot measure is its finding, with the error's kind, and no rank waits") {
  CheckResult result{.name = "c", .kind = Kind::kBug};
  const int last = world.size() - 1;
  const auto take = [&](Facts&) {
    if (world.rank() == last) fail(Kind::kDevice, "no such device");
  };
  CHECK_FALSE(measure(result, world.comm(), a_host_each(world.size()), take));
  CHECK(result.status == Status::kFail);
  CHECK(result.kind == Kind::kDevice);
  CHECK(result.notes.size() == 1);
  CHECK(says(result, str("fail n", last, ": rank ", last, " (n", last, "): no such device")));
}

RANKS_CASE("another binary on one rank is found, and its host named") {
  const Facts real = program_facts("tokamak 0.1.0\ncommit x");
  CHECK(real.text("binary").size() == 32);
  CHECK(real.text("oneDNN").find("libdnnl.so") != std::string::npos);
  CHECK(real.text("MPI").find("libmpi.so") != std::string::npos);
  const RankHosts peers = a_host_each(world.size());
  const CheckResult same = check_program(world.comm(), peers, real);
  CHECK(same.status == Status::kOk);
  CHECK(same.value.find("tokamak 0.1.0, binary") == 0);
  if (world.size() < 3) return;
  Facts other = real;
  if (world.rank() == 1) other.set("binary", std::string("ffff"));
  const CheckResult found = check_program(world.comm(), peers, other);
  CHECK(found.status == Status::kFail);
  CHECK(found.kind == Kind::kConfig);
  CHECK(found.notes.size() == 1);
  CHECK(says(found, "fail n1: rank 1 (n1): binary ffff"));
}

RANKS_CASE("another oneDNN on one rank fails, another C library warns") {
  if (world.size() < 3) return;
  for (const auto& [library, status] : {std::pair("oneDNN", Status::kFail), std::pair("C library", Status::kWarn)}) {
    Facts own;
    own.set("binary", std::string("1"));
    own.set(library, std::string(world.rank() == 2 ? "lib.so.2" : "lib.so.1"));
    const CheckResult found = check_program(world.comm(), a_host_each(world.size()), own);
    CHECK(found.status == status);
    CHECK(says(found, str("n2: rank 2 (n2): ", library, " lib.so.2, most ranks: lib.so.1")));
  }
}

RANKS_CASE("a config that differs on one rank is found, with the line") {
  const RankHosts peers = a_host_each(world.size());
  const CheckResult same = check_config(world.comm(), peers, [] { return "a: 1\nb: 2\n"; });
  CHECK(same.status == Status::kOk);
  const int last = world.size() - 1;
  if (last == 0) return;
  const CheckResult found =
      check_config(world.comm(), peers, [&] { return world.rank() == last ? "a: 1\n  b: 3\n" : "a: 1\n  b: 2\n"; });
  CHECK(found.status == Status::kFail);
  CHECK(found.kind == Kind::kConfig);
  CHECK(found.notes.size() == 1);
  CHECK(says(found, str("fail n", last, ": rank ", last, " (n", last,
                        ") reads another config: 'b: 3' where rank 0 has 'b: 2'")));
}

RANKS_CASE("a config that no rank can read is one finding, and no host's fault") {
  const CheckResult found = check_config(world.comm(), a_host_each(world.size()),
                                         []() -> std::string { fail(Kind::kConfig, "c.yaml:3: unknown key"); });
  CHECK(found.status == Status::kFail);
  CHECK(found.notes.size() == 1);
  CHECK(found.notes.front().host.empty());
}

RANKS_CASE("a clock that is off by more than a second is found, with its sign") {
  const RankHosts peers = a_host_each(world.size());
  CHECK(check_clocks(world.comm(), peers, now_seconds).status == Status::kOk);
  const int last = world.size() - 1;
  if (last == 0) return;
  for (const double skew : {-40.0, 40.0}) {
    const CheckResult found =
        check_clocks(world.comm(), peers, [&] { return now_seconds() + (world.rank() == last ? skew : 0); });
    CHECK(found.status == Status::kWarn);
    CHECK(found.notes.size() == 1);
    CHECK(found.notes.front().host == str("n", last));
    CHECK(says(found, skew > 0 ? " s ahead of rank 0's" : " s behind rank 0's"));
    const double ahead = found.ranks[static_cast<size_t>(last)].number("seconds_ahead_of_rank_0");
    CHECK(std::abs(ahead - skew) < 5);
  }
}
