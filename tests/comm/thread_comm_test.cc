// The end of ranks that are threads. If one fails, leaves or calls another collective, no other rank waits forever.
#include "comm/thread_comm.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <string>

#include "base/error.h"
#include "comm/no_stream.h"

using namespace tokamak;

namespace {

// Returns the error that run_on_threads(3, body) throws.
template <class Body>
std::string error_of(const Body& body) {
  try {
    run_on_threads(3, body);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("every rank runs once, in a world of that size") {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    std::atomic<int> sum{0}, sizes{0};
    run_on_threads(ranks, [&](Comm& comm) {
      sum += 1 << comm.rank();
      sizes += comm.size();
    });
    CHECK(sum == (1 << ranks) - 1);
    CHECK(sizes == ranks * ranks);
  }
}

TEST_CASE("a rank's error is the run's, and the ranks that wait for it end") {
  std::atomic<int> ended{0};
  const std::string error = error_of([&](Comm& comm) {
    if (comm.rank() == 1) fail(Kind::kData, "shard 7 is missing");
    try {
      comm.barrier();
    } catch (const Error& e) {
      ended += e.kind() == Kind::kComm;
      throw;
    }
  });
  CHECK(error == "shard 7 is missing");
  CHECK(ended == 2);
}

TEST_CASE("an error of a rank ends also those that wait in a part of the group") {
  CHECK(error_of([](Comm& comm) {
          const auto part = comm.split(comm.rank() % 2);
          if (comm.rank() == 2) fail(Kind::kData, "shard 7 is missing");
          part->barrier();
          comm.barrier();
        }) == "shard 7 is missing");
}

TEST_CASE("a rank that returns while others wait for it is named") {
  CHECK_THAT(error_of([](Comm& comm) {
               if (comm.rank() != 2) comm.barrier();
             }),
             Catch::Contains("waits in barrier(0 bytes), and rank 2 has returned"));
}

TEST_CASE("ranks that call different collectives, or of different sizes, are named with what they call") {
  CHECK(error_of([](Comm& comm) {
          if (comm.rank() == 1) comm.max(1);
          if (comm.rank() != 1) comm.barrier();
        }) == "rank 0 calls barrier(0 bytes), rank 1 calls max(0 bytes)");
  CHECK(error_of([](Comm& comm) {
          std::vector<double> x(comm.rank() == 2 ? 2 : 1, 1.0);
          NoStream stream;
          comm.all_reduce(stream, Tensor(x.data(), DType::kF64, Shape{static_cast<int64_t>(x.size())}));
        }) == "rank 0 calls gather(8 bytes), rank 2 calls gather(16 bytes)");
}

TEST_CASE("a rank that receives something else than another one sends is named") {
  CHECK_THAT(error_of([](Comm& comm) {
               std::vector<float> x(4, 1.0f);
               NoStream stream;
               const auto first = [&](int64_t n) { return Tensor(x.data(), DType::kF32, Shape{n}); };
               std::vector<Comm::Transfer> sends, receives;
               if (comm.rank() == 0) sends = {{1, first(4)}, {2, first(3)}};
               if (comm.rank() == 1) receives = {{0, first(4)}};
               if (comm.rank() == 2) receives = {{0, first(4)}};
               comm.exchange(stream, sends, receives);
             }),
             Catch::Contains("rank 2 receives something else than rank 0 sends"));
}
