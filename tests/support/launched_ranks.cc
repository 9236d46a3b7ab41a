// The ranks that a launcher has started: each is a process that runs every case. If one process fails, the test fails.
#include "support/catch.h"
#include "support/ranks.h"

namespace tokamak {

namespace {

World*& launched() {
  static World* world = nullptr;
  return world;
}

}  // namespace

void on_ranks(const RankBody& body) { body(*launched()); }

}  // namespace tokamak

int main(int argc, char** argv) {
  tokamak::World world;
  tokamak::launched() = &world;
  return tokamak::run_catch(argc, argv);
}
