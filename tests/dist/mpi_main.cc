// Runs Catch inside a World, so that every rank runs every case; a rank that fails fails the run.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include "dist/test_world.h"

namespace tokamak {
World*& test_world_slot() {
  static World* world = nullptr;
  return world;
}
}  // namespace tokamak

int main(int argc, char** argv) {
  tokamak::World world;
  tokamak::test_world_slot() = &world;
  return Catch::Session().run(argc, argv);
}
