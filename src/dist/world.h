// All processes of the run, and how this one was started. Under mpirun or srun the ranks talk through MPI; a process
// started alone is a world of one and never touches MPI.
#pragma once

#include <memory>

#include "dist/comm.h"

namespace tokamak {

class World {
 public:
  World();   // starts MPI if a launcher started us; Error(kComm) if that fails, Error(kConfig)
             // where a launcher started several of us in a way that we cannot join
  ~World();  // ends it
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Comm& comm() { return *comm_; }
  int rank() const { return comm_->rank(); }
  int size() const { return comm_->size(); }
  int local_rank() const { return local_rank_; }  // among the ranks of this node
  int local_size() const { return local_size_; }

 private:
  std::unique_ptr<Comm> comm_;
  int local_rank_ = 0;
  int local_size_ = 1;
};

}  // namespace tokamak
