// How a run ends when one rank does. The cases are hidden, since each ends every process; ctest checks the exit codes
// (CMakeLists.txt). One rank waits for the one that ends, another computes and calls nothing.
#include <signal.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <thread>

#include "support/ranks.h"

using namespace tokamak;

namespace {

void all_but(int ender, World& world, const std::function<void()>& end) {
  world.comm().barrier();
  if (world.rank() == ender) end();
  if (world.rank() == 1) world.comm().barrier();
  for (volatile bool forever = true; forever;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
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
