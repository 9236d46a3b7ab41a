// All processes of the run, and how this one was started (launch.h). Under mpirun or srun with PMIx the ranks
// communicate through MPI, otherwise over TCP. A single process is a world of one and uses neither.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "comm/comm.h"
#include "comm/launch.h"
#include "comm/watch.h"

namespace tokamak {

class World {
 public:
  // Joins the other ranks; Error(kComm) if that fails, Error(kConfig) as from find_launch(). Polls `interrupted` while
  // waiting (over TCP; a launcher of MPI ends its ranks itself); true throws Error(kStopped).
  explicit World(std::function<bool()> interrupted = {});
  explicit World(std::unique_ptr<Comm> ranks);  // already connected; collective
  ~World();                                     // disconnects; collective, within leave_within
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Comm& comm() { return *comm_; }
  int rank() const { return comm_->rank(); }
  int size() const { return comm_->size(); }
  int local_rank() const { return local_rank_; }  // among the ranks of this node
  int local_size() const { return local_size_; }
  int ranks_on_cores();  // ranks that may run on the same cores as this one, itself included; collective

  // Ends every process of the run at once with this exit code. From any thread. THE way to end after an error, or a
  // hang, that the other ranks do not share.
  [[noreturn]] void end_all(int exit_code);

  // The control connections; nullptr in a world of one, or if they could not be made.
  Watch* watch() { return watch_ ? &*watch_ : nullptr; }

  // Limit of the destructor's wait for the other ranks, after which it exits with code 6; unlimited by default.
  void leave_within(double seconds) { leave_within_ = seconds; }

 private:
  void find_neighbours(const std::vector<std::string>& hosts);  // by rank

  const ProcessLaunch launch_;
  std::unique_ptr<Comm> comm_;
  std::optional<Watch> watch_;
  std::optional<double> leave_within_;
  int local_rank_ = 0;
  int local_size_ = 1;
};

}  // namespace tokamak
