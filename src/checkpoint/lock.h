// One run at a time writes a checkpoint directory. Two guards, because ranks can outlive their job for as long as a
// network partition lasts, with the file system still in reach:
//   - the lock: flock on DIR/.lock, gone with its process. A second run is refused, unless it is a later start of the
//     same job: then the holder can only be a leftover, and is shut out.
//   - the fence: .lock's text names the incarnation that owns the directory. A writer checks it right before it
//     commits.
#pragma once

#include <string>

namespace tokamak {

// One start of a run. `id` is unique and fit for file names; starts of one batch job share `job` ("": there is none).
struct Incarnation {
  std::string id;
  std::string job;
};

// From the environment (SLURM_JOB_ID, SLURM_RESTART_COUNT), else host, time and process.
Incarnation current_incarnation();

class DirectoryLock {
 public:
  // Waits up to `timeout` seconds for the holder to end (a run that is being killed takes a moment), then
  // Error(kCheckpoint) naming it. The directory must exist.
  DirectoryLock(const std::string& directory, Incarnation incarnation, double timeout);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  void claim();             // writes the fence: no earlier holder can commit from here on
  bool still_ours() const;  // whether the fence is the one that claim() wrote

 private:
  bool acquire();  // false: another process holds it
  std::string holder() const;
  bool held_by_our_job() const;

  std::string path_;
  Incarnation incarnation_;
  std::string text_;
  int fd_ = -1;
};

}  // namespace tokamak
