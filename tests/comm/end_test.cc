// How a run ends when one rank does. The cases are hidden, since each ends every process; ctest checks the exit codes
// (CMakeLists.txt). One rank waits for the one that ends, another computes and calls nothing.
#include <signal.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/no_stream.h"
#include "support/ranks.h"

using namespace tokamak;

namespace {

[[noreturn]] void compute() {
  for (volatile bool forever = true; forever;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::abort();
}

void all_but(int ender, World& world, const std::function<void()>& end) {
  world.comm().barrier();
  if (world.rank() == ender) end();
  if (world.rank() == 1) world.comm().barrier();
  compute();
}

// Receives `count` numbers from this rank.
void receive(World& world, int from, int64_t count) {
  std::vector<float> numbers(static_cast<size_t>(count));
  NoStream stream;
  const std::vector<Comm::Transfer> receives = {{from, Tensor(numbers.data(), DType::kF32, Shape{count})}};
  world.comm().exchange(stream, {}, receives);
}

}  // namespace

RANKS_CASE("rank 0 ends the run with a code of its own", "[.]") {
  all_but(0, world, [&] { world.end_all(7); });
}

RANKS_CASE("rank 2 ends the run with a code of its own", "[.]") {
  all_but(2, world, [&] { world.end_all(7); });
}

RANKS_CASE("rank 0 is killed", "[.]") {
  all_but(0, world, [] { ::raise(SIGKILL); });
}

RANKS_CASE("rank 2 is killed", "[.]") {
  all_but(2, world, [] { ::raise(SIGKILL); });
}

RANKS_CASE("rank 2 dies in an exchange, in which another rank waits for its tensor", "[.]") {
  world.comm().barrier();
  if (world.rank() == 2) ::raise(SIGKILL);
  if (world.rank() == 1) receive(world, 2, 3);
  compute();
}

RANKS_CASE("a message of another size than expected ends an exchange with an error", "[.]") {
  if (world.rank() == 0) {
    std::vector<float> numbers(3);
    NoStream stream;
    world.comm().exchange(stream, std::vector<Comm::Transfer>{{1, Tensor(numbers.data(), DType::kF32, Shape{3})}}, {});
    compute();
  }
  const std::string error = rank_checks::message_of([&] { receive(world, 0, 4); });
  world.end_all((Catch::Contains("12 bytes; expected were") && Catch::Contains("16")).match(error) ? 7 : 1);
}
