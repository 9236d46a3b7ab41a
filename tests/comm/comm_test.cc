#include <time.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "comm/collective_error.h"
#include "comm/no_stream.h"
#include "comm/plan_comm.h"
#include "support/ranks.h"

using namespace tokamak;

namespace {

template <class T>
Tensor view(std::vector<T>& values) {
  return {values.data(), DTypeOf<T>::kValue, Shape{static_cast<int64_t>(values.size())}};
}

// Calls reduce_scatter with exactly as much scratch as scratch_elements() asks for.
void reduce_scatter(Comm& comm, Tensor full, Tensor slice, DType dtype) {
  NoStream stream;
  const int64_t elements = comm.scratch_elements(slice.count(), dtype), bytes = elements * size_of(dtype);
  std::vector<char> scratch(static_cast<size_t>(bytes) + 64, 'x');
  comm.reduce_scatter(
      stream,
      {.full = full, .slice = slice, .dtype = dtype, .scratch = Tensor(scratch.data(), dtype, Shape{elements})});
  CHECK(std::count(scratch.begin() + bytes, scratch.end(), 'x') == 64);
}

// Returns the processor time of this thread alone, which does not depend on other load of the machine.
double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

RANKS_CASE("a rank that waits for another leaves the processor to whoever has something to do") {
  constexpr double kSeconds = 0.4;
  Comm& comm = world.comm();
  NoStream stream;
  std::vector<float> slice(64), full(static_cast<size_t>(64 * comm.size()));
  const auto waits_in = [&](const auto& collective) {
    comm.barrier();
    const double before = processor_seconds();
    if (comm.rank() == 0) std::this_thread::sleep_for(std::chrono::duration<double>(kSeconds));
    collective();
    CHECK(processor_seconds() - before < kSeconds / 4);
  };
  waits_in([&] { comm.barrier(); });
  waits_in([&] { comm.all_gather(stream, view(slice), view(full)); });
}

// All inputs are small integers, so every sum is exact and no tolerance is needed.

RANKS_CASE("all_gather puts the slices in the order of the ranks, in place or not") {
  Comm& comm = world.comm();
  NoStream stream;
  constexpr int64_t kSlice = 64;
  std::vector<bf16> slice(kSlice), full(static_cast<size_t>(kSlice * comm.size()));
  for (int64_t i = 0; i < kSlice; ++i) slice[i] = bf16(static_cast<float>(comm.rank() + i));
  comm.all_gather(stream, view(slice), view(full));
  const auto check = [&] {
    for (int r = 0; r < comm.size(); ++r) {
      for (int64_t i = 0; i < kSlice; ++i) REQUIRE(to_float(full[r * kSlice + i]) == static_cast<float>(r + i));
    }
  };
  check();
  for (int64_t i = 0; i < comm.size() * kSlice; ++i) {
    if (i / kSlice != comm.rank()) full[i] = bf16(-1.0f);
  }
  comm.all_gather(stream, view(full).flat(comm.rank() * kSlice, (comm.rank() + 1) * kSlice), view(full));
  check();
}

namespace {

void check_reduce_scatter(Comm& comm, int64_t slice_length) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    std::vector<float> full(static_cast<size_t>(slice_length * comm.size())), slice(slice_length);
    const auto value = [](int64_t i, int rank) { return static_cast<float>(i % 61 + rank); };
    for (size_t i = 0; i < full.size(); ++i) full[i] = value(static_cast<int64_t>(i), comm.rank());
    reduce_scatter(comm, view(full), view(slice), dtype);
    int64_t wrong = 0;
    for (int64_t i = 0; i < slice_length; ++i) {
      float expected = 0;
      for (int r = 0; r < comm.size(); ++r) expected += value(comm.rank() * slice_length + i, r);
      wrong += slice[i] != expected;
    }
    CHECK(wrong == 0);
  }
}

void check_broadcasts(Comm& comm, size_t length) {
  for (int root = 0; root < comm.size(); ++root) {
    std::string bytes = comm.rank() == root ? std::string(length, static_cast<char>('a' + root)) : "other";
    comm.broadcast(bytes, root);
    REQUIRE(bytes == std::string(length, static_cast<char>('a' + root)));
    comm.barrier();
  }
}

}  // namespace

RANKS_CASE("reduce_scatter sums what every rank holds of a slice") { check_reduce_scatter(world.comm(), 32); }

RANKS_CASE("reduce_scatter sums long slices in several rounds", "[large]") {
  check_reduce_scatter(world.comm(), int64_t{3} << 20);  // more than one round on two ranks and above
}

RANKS_CASE("a group that only plans has the scratch that the ranks work in, and they work in nothing else") {
  Comm& comm = world.comm();
  if (comm.size() == 1) return;  // one rank reduces nothing
  const auto planned = make_plan_comm(comm.size(), *make_cpu_backend().device);
  for (const int64_t slice : {int64_t{32}, int64_t{3} << 20}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      CHECK(planned->scratch_elements(slice, dtype) == comm.scratch_elements(slice, dtype));
      CHECK(comm.scratch_elements(slice, dtype) <= int64_t{8} << 20);  // bounded, however long the slices are
    }
  }
  NoStream stream;
  std::vector<float> full(static_cast<size_t>(32 * comm.size())), slice(32);
  CHECK_THROWS_AS(comm.reduce_scatter(stream, {.full = view(full), .slice = view(slice)}), Error);
}

RANKS_CASE("collectives refuse tensors that break their contract, on every rank and in every group") {
  Comm& comm = world.comm();
  NoStream stream;
  const auto slices = static_cast<size_t>(comm.size());
  std::vector<float> full(32 * slices), slice(32), short_slice(16), short_full(16 * slices), odd(7),
      odd_full(7 * slices);
  std::vector<bf16> narrow(64);
  std::vector<int32_t> whole(4);
  CHECK_THROWS_AS(comm.all_gather(stream, view(short_slice), view(full)), Error);  // slices of another length
  CHECK_THROWS_AS(comm.all_gather(stream, view(narrow), view(full)), Error);       // of another dtype
  CHECK_THROWS_AS(comm.all_gather(stream, view(odd), view(odd_full)), Error);      // no multiple of 64 bytes
  CHECK_THROWS_AS(comm.reduce_scatter(stream, {.full = view(full), .slice = view(narrow)}), Error);
  CHECK_THROWS_AS(comm.reduce_scatter(stream, {.full = view(short_full), .slice = view(short_slice)}),
                  Error);  // in bf16
  CHECK_THROWS_AS(comm.all_reduce(stream, view(whole)), Error);
}

RANKS_CASE("a reduction in bf16 rounds each contribution, and the sum stays f32") {
  Comm& comm = world.comm();
  NoStream stream;
  std::vector<float> full(static_cast<size_t>(32 * comm.size()), 1.0f + 0x1p-10f), slice(32);
  reduce_scatter(comm, view(full), view(slice), DType::kBF16);
  CHECK(slice[7] == static_cast<float>(comm.size()));
  reduce_scatter(comm, view(full), view(slice), DType::kF32);
  CHECK(slice[7] == static_cast<float>(comm.size()) * (1.0f + 0x1p-10f));
}

RANKS_CASE("all_reduce sums a handful of numbers") {
  Comm& comm = world.comm();
  NoStream stream;
  std::vector<double> x = {1.0, static_cast<double>(comm.rank())};
  comm.all_reduce(stream, view(x));
  CHECK(x[0] == comm.size());
  CHECK(x[1] == comm.size() * (comm.size() - 1) / 2);
}

RANKS_CASE("all_reduce sums many numbers, each with its own place") {
  Comm& comm = world.comm();
  NoStream stream;
  std::vector<double> x(100'001), expected = x;
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<double>(i) * (comm.rank() + 1);
    expected[i] = static_cast<double>(i) * comm.size() * (comm.size() + 1) / 2;
  }
  comm.all_reduce(stream, view(x));
  CHECK((x == expected));
}

RANKS_CASE("host values travel: broadcast, gather of different lengths, maximum") {
  Comm& comm = world.comm();
  std::string text = comm.rank() == 0 ? "from rank 0" : "";
  comm.broadcast(text, 0);
  CHECK(text == "from rank 0");
  const auto all = comm.gather_all(std::string(static_cast<size_t>(comm.rank()), 'x'));
  REQUIRE(all.size() == static_cast<size_t>(comm.size()));
  for (size_t r = 0; r < all.size(); ++r) CHECK(all[r].size() == r);
  CHECK(comm.max(comm.rank() * 7) == (comm.size() - 1) * 7);
}

RANKS_CASE("split makes groups in the order of the ranks") {
  Comm& comm = world.comm();
  const auto part = comm.split(comm.rank() % 2);
  CHECK(part->rank() == comm.rank() / 2);
  CHECK(part->size() == (comm.size() + (comm.rank() % 2 == 0 ? 1 : 0)) / 2);
}

RANKS_CASE("sums are formed in f32 in the order of the ranks, to the bit") {
  Comm& comm = world.comm();
  NoStream stream;
  constexpr int64_t kSlice = 96;
  // Contributions of very different sizes, so that a sum in another order or a wider type has other bits.
  const auto contribution = [](int64_t i, int rank) {
    return std::ldexp(1.0f + 0.37f * static_cast<float>(i % 11), rank * 5 % 13);
  };
  std::vector<float> full(static_cast<size_t>(kSlice * comm.size())), slice(kSlice), all(kSlice);
  for (int64_t i = 0; i < kSlice * comm.size(); ++i) full[i] = contribution(i, comm.rank());
  for (int64_t i = 0; i < kSlice; ++i) all[i] = contribution(i, comm.rank());
  reduce_scatter(comm, view(full), view(slice), DType::kF32);
  comm.all_reduce(stream, view(all));
  for (int64_t i = 0; i < kSlice; ++i) {
    float scattered = 0, reduced = 0;
    for (int r = 0; r < comm.size(); ++r) {
      scattered += contribution(comm.rank() * kSlice + i, r);
      reduced += contribution(i, r);
    }
    REQUIRE(slice[i] == scattered);
    REQUIRE(all[i] == reduced);
  }
}

RANKS_CASE("any rank may be the root of a broadcast, of nothing or of a byte") {
  check_broadcasts(world.comm(), 0);
  check_broadcasts(world.comm(), 1);
}

RANKS_CASE("a broadcast may be of more than a socket holds", "[large]") {
  check_broadcasts(world.comm(), size_t{30} << 20);
}

RANKS_CASE("groups exchange among themselves, between exchanges of all") {
  Comm& comm = world.comm();
  NoStream stream;
  const int color = comm.rank() % 2;
  const auto part = comm.split(color);
  for (int round = 0; round < 3; ++round) {
    std::vector<double> mine = {static_cast<double>(comm.rank() + round)}, all = mine;
    part->all_reduce(stream, view(mine));
    comm.all_reduce(stream, view(all));
    double of_part = 0, of_all = 0;
    for (int r = 0; r < comm.size(); ++r) {
      of_part += r % 2 == color ? r + round : 0;
      of_all += r + round;
    }
    CHECK(mine[0] == of_part);
    CHECK(all[0] == of_all);
    std::string text = part->rank() == part->size() - 1 ? str("last of ", color) : "";
    part->broadcast(text, part->size() - 1);
    CHECK(text == str("last of ", color));
  }
}

RANKS_CASE("gathers and reductions on streams of their own neither wait for each other nor for the host's calls") {
  Comm& comm = world.comm();
  const Backend cpu = make_cpu_backend();
  const auto gathers = cpu.device->make_stream({.name = "gather", .priority = StreamPriority::kHigh});
  const auto reductions = cpu.device->make_stream({.name = "reduce", .priority = StreamPriority::kHigh});
  constexpr int64_t kSlice = 4096;
  for (int round = 0; round < 3; ++round) {
    std::vector<float> slice(kSlice, static_cast<float>(comm.rank() + round)), sum(kSlice, -1);
    std::vector<float> whole(static_cast<size_t>(kSlice * comm.size()), -1), addends(whole.size(), 1.0f);
    std::vector<float> scratch(static_cast<size_t>(comm.scratch_elements(kSlice, DType::kF32)));
    const auto gather = [&] { comm.all_gather(*gathers, view(slice), view(whole)); };
    const auto reduce = [&] {
      comm.reduce_scatter(*reductions, {.full = view(addends), .slice = view(sum), .scratch = view(scratch)});
    };
    // Half of the ranks reduce first. The others wait for the gather, which can only complete if all take part.
    if (comm.rank() % 2 == 0) {
      reduce();
      gather();
    } else {
      gather();
      gathers->synchronize();
      reduce();
    }
    const int64_t highest = comm.max(comm.rank());  // while gather and reductions are under way
    gathers->synchronize();
    reductions->synchronize();
    CHECK(highest == comm.size() - 1);
    for (int r = 0; r < comm.size(); ++r) CHECK(whole[r * kSlice + 7] == static_cast<float>(r + round));
    CHECK(std::count(sum.begin(), sum.end(), static_cast<float>(comm.size())) == kSlice);
  }
}

RANKS_CASE("an error on one rank becomes the error of all, with that rank's message and kind") {
  Comm& comm = world.comm();
  const int last = comm.size() - 1;
  try {
    collectively(comm, [&] {
      if (comm.rank() == last) fail(Kind::kData, "shard 7 is missing", "look for it");
    });
    FAIL("nothing was thrown");
  } catch (const SharedError& error) {
    CHECK(error.kind() == Kind::kData);
    CHECK(error.hint() == "look for it");
    const std::string expected = comm.size() == 1 ? "shard 7 is missing" : str("rank ", last, ": shard 7 is missing");
    CHECK(std::string(error.what()) == expected);
  }
}

RANKS_CASE("an error that all ranks find is told once, without a rank") {
  Comm& comm = world.comm();
  try {
    collectively(comm, [] { fail(Kind::kConfig, "no such key"); });
    FAIL("nothing was thrown");
  } catch (const SharedError& error) {
    CHECK(std::string(error.what()) == "no such key");
  }
  collectively(comm, [] {});
}
