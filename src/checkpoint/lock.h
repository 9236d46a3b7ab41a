// One run at a time writes a checkpoint directory. Two guards, because ranks can outlive their job for as long as a
// network partition lasts, with the file system still in reach:
//   - the lock: flock on DIR/.lock, gone with its process. A second run is refused, unless it is a later start of the
//     same job: then the holder can only be a leftover, and is shut out.
//   - the fence: .lock's text names the incarnation that owns the directory. A writer checks it right before it
//     commits. A writer that stalls after the check is stopped by commit.h: its renames go through a directory that the
//     next owner removes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tokamak {

// One start of a run. `id` is unique and fit for file names. Starts of one batch job share `job` ("": there is none);
// of two of them the one with more requeues, then the one with the higher attempt is the later.
struct Incarnation {
  std::string id;
  std::string job;
  int64_t requeues = 0;  // of the job, by the scheduler
  int64_t attempt = 0;   // inside one allocation, counted by the script that starts the ranks

  bool follows(const Incarnation& other) const;  // a later start of the same job
};

// From the environment, else host, time and process: TOKAMAK_JOB, a name that several jobs of one run may share, which
// then count TOKAMAK_ATTEMPT through; or SLURM_JOB_ID, SLURM_RESTART_COUNT and TOKAMAK_ATTEMPT.
// Error(kConfig) where a count is no number.
Incarnation current_incarnation();

// Whose the directory is by the text of .lock: the incarnation's that claimed it, another's, or it cannot be read.
enum class Fence { kOurs, kAnothers, kUnreadable };

// What a start of `incarnation` would wait for now: the words of the process that holds the lock of `directory`, in one
// line. "": nothing, or an earlier start of the same job, which it would shut out.
std::string run_in_the_way(const std::string& directory, const Incarnation& incarnation);

// Whether a process holds the lock of `directory`, seen from outside: nothing is locked, so that no run that starts is
// disturbed. Nothing where that cannot be told from here: its host or container is another, or there is no lock.
std::optional<bool> is_locked(const std::string& directory);

class DirectoryLock {
 public:
  // Waits up to `timeout` seconds for the holder to end (a run that is being killed takes a moment), then
  // Error(kCheckpoint) naming it. A holder that this incarnation follows is shut out at once. The directory must exist.
  DirectoryLock(const std::string& directory, Incarnation incarnation, double timeout);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  void claim();         // writes the fence: no earlier holder can commit from here on
  Fence fence() const;  // as it is now

 private:
  bool acquire();  // false: another process holds it

  std::string path_;
  Incarnation incarnation_;
  std::string text_;
  int fd_ = -1;
};

}  // namespace tokamak
