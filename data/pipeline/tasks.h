// Work in tasks, each of which makes one directory, complete or absent. So a task that was killed is done again, and
// a finished one is not. A task's result depends on its input alone: any number of threads, ranks and starts make the
// same directories.
//
// Ranks share the tasks by number, and see each other's work and results in the file system. No rank talks to another:
// they may be processes of mpirun, or of a Slurm array of which some start when others have ended. So a rank that is
// done does the tasks that no process is at.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace tokamak {

struct Task {
  std::string output;                                   // the directory; its parent exists
  std::function<void(const std::string& staging)> run;  // writes into `staging`, and syncs its files
};

// This process's share of the work.
struct Share {
  int64_t rank = 0, ranks = 1;
  int64_t threads = 1;
};

struct TaskProgress {
  int64_t done = 0, all = 0;  // tasks, of all ranks as far as it is known
  int64_t found = 0;          // of those done, the ones that were done before
  bool is_waiting = false;    // the tasks that are left are others'
};

// Runs the tasks of this rank that are not done: those whose number is the rank, modulo the ranks. Then runs what
// other ranks have not begun, and waits until all are done. The first error of a task ends the others after their
// current one, and is thrown.
void run_tasks(std::span<const Task> tasks, const Share& share,
               const std::function<void(const TaskProgress&)>& progress);

}  // namespace tokamak
