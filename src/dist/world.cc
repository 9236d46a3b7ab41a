#include "dist/world.h"

#include <cstdlib>

#include "base/error.h"
#include "dist/mpi.h"

namespace tokamak {

namespace {

// Several tasks that each take themselves for the whole world would train N models into one directory.
void refuse_unknown_launcher() {
  for (const char* name : {"SLURM_STEP_NUM_TASKS", "PMI_SIZE"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || std::atoi(value) <= 1) continue;
    fail(Kind::kConfig, str(name, " is ", value, ": this is one of several tasks, but their launcher offers no PMIx"),
         "start with srun --mpi=pmix, or with mpirun");
  }
}

}  // namespace

World::World() {
  if (!started_by_launcher()) {
    refuse_unknown_launcher();
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
