#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "dist/test_world.h"
#include "dist/together.h"

using namespace tokamak;

namespace {

struct NoStream : Stream {
  void record(Event&) override {}
  void wait(const Event&) override {}
  void synchronize() override {}
};

template <class T>
Tensor view(std::vector<T>& values) {
  return {values.data(), DTypeOf<T>::kValue, Shape{static_cast<int64_t>(values.size())}};
}

}  // namespace

// All inputs are small integers, so every sum is exact and no tolerance is needed.

TEST_CASE("all_gather puts the slices in the order of the ranks, in place or not") {
  Comm& comm = test_world().comm();
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

TEST_CASE("reduce_scatter sums what every rank holds of a slice") {
  Comm& comm = test_world().comm();
  NoStream stream;
  // 3 Mi elements a slice take more than one round on two ranks and above.
  for (const int64_t slice_length : {int64_t{32}, int64_t{3} << 20}) {
    for (const DType wire : {DType::kF32, DType::kBF16}) {
      std::vector<float> full(static_cast<size_t>(slice_length * comm.size())), slice(slice_length);
      const auto value = [](int64_t i, int rank) { return static_cast<float>(i % 61 + rank); };
      for (size_t i = 0; i < full.size(); ++i) full[i] = value(static_cast<int64_t>(i), comm.rank());
      comm.reduce_scatter(stream, view(full), view(slice), wire);
      int64_t wrong = 0;
      for (int64_t i = 0; i < slice_length; ++i) {
        float expected = 0;
        for (int r = 0; r < comm.size(); ++r) expected += value(comm.rank() * slice_length + i, r);
        wrong += slice[i] != expected;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("a bf16 wire rounds each addend, and the sum stays f32") {
  Comm& comm = test_world().comm();
  NoStream stream;
  std::vector<float> full(static_cast<size_t>(32 * comm.size()), 1.0f + 0x1p-10f), slice(32);
  comm.reduce_scatter(stream, view(full), view(slice), DType::kBF16);
  CHECK(slice[7] == static_cast<float>(comm.size()));
  comm.reduce_scatter(stream, view(full), view(slice), DType::kF32);
  CHECK(slice[7] == static_cast<float>(comm.size()) * (1.0f + 0x1p-10f));
}

TEST_CASE("all_reduce sums a handful of numbers") {
  Comm& comm = test_world().comm();
  NoStream stream;
  std::vector<double> x = {1.0, static_cast<double>(comm.rank())};
  comm.all_reduce(stream, view(x));
  CHECK(x[0] == comm.size());
  CHECK(x[1] == comm.size() * (comm.size() - 1) / 2);
}

TEST_CASE("host values travel: broadcast, gather of different lengths, maximum") {
  Comm& comm = test_world().comm();
  std::string text = comm.rank() == 0 ? "from rank 0" : "";
  comm.broadcast(text, 0);
  CHECK(text == "from rank 0");
  const auto all = comm.gather_all(std::string(static_cast<size_t>(comm.rank()), 'x'));
  REQUIRE(all.size() == static_cast<size_t>(comm.size()));
  for (size_t r = 0; r < all.size(); ++r) CHECK(all[r].size() == r);
  CHECK(comm.max(comm.rank() * 7) == (comm.size() - 1) * 7);
}

TEST_CASE("split makes groups in the order of the ranks") {
  Comm& comm = test_world().comm();
  const auto part = comm.split(comm.rank() % 2);
  CHECK(part->rank() == comm.rank() / 2);
  CHECK(part->size() == (comm.size() + (comm.rank() % 2 == 0 ? 1 : 0)) / 2);
}

TEST_CASE("an error on one rank becomes the error of all, with that rank's message and kind") {
  Comm& comm = test_world().comm();
  const int last = comm.size() - 1;
  try {
    together(comm, [&] {
      if (comm.rank() == last) fail(Kind::kData, "shard 7 is missing", "look for it");
    });
    FAIL("nothing was thrown");
  } catch (const SharedError& error) {
    CHECK(error.kind() == Kind::kData);
    CHECK(error.hint() == "look for it");
    const std::string expected = comm.size() == 1 ? "shard 7 is missing" : str("rank ", last, ": shard 7 is missing");
    CHECK(error.what() == expected);
  }
}

TEST_CASE("an error that all ranks find is told once, without a rank") {
  Comm& comm = test_world().comm();
  try {
    together(comm, [] { fail(Kind::kConfig, "no such key"); });
    FAIL("nothing was thrown");
  } catch (const SharedError& error) {
    CHECK(std::string(error.what()) == "no such key");
  }
  CHECK_NOTHROW(together(comm, [] {}));
}
