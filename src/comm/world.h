// All processes of the run, and how this one was started (launch.h). Under mpirun or srun with PMIx the ranks talk
// through MPI, otherwise over TCP; a process started alone is a world of one and touches neither.
#pragma once

#include <memory>

#include "comm/comm.h"
#include "comm/launch.h"

namespace tokamak {

class World {
 public:
  World();  // joins the other ranks; Error(kComm) if that fails, Error(kConfig) as find_launch
  explicit World(std::unique_ptr<Comm> ranks);  // which have found each other; collective
  ~World();                                     // takes leave of them; collective
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Comm& comm() { return *comm_; }
  int rank() const { return comm_->rank(); }
  int size() const { return comm_->size(); }
  int local_rank() const { return local_rank_; }  // among the ranks of this node
  int local_size() const { return local_size_; }

 private:
  void find_neighbours();

  const Launch launch_;
  std::unique_ptr<Comm> comm_;
  int local_rank_ = 0;
  int local_size_ = 1;
};

}  // namespace tokamak
