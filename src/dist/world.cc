#include "dist/world.h"

#include "dist/mpi.h"

namespace tokamak {

World::World() {
  if (!started_by_launcher()) {
    comm_ = make_single_comm();
    return;
  }
  MpiWorld world = start_mpi();
  comm_ = std::move(world.comm);
  local_rank_ = world.local_rank;
  local_size_ = world.local_size;
}

World::~World() {
  const bool mpi = started_by_launcher();
  comm_.reset();
  if (mpi) end_mpi();
}

}  // namespace tokamak
