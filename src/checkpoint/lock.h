// One run at a time writes a checkpoint directory. There are two guards, because ranks can outlive their job during a
// network partition while they still reach the file system:
//   - the lock: flock on DIR/.lock, which the kernel releases with its process. A second run is refused. A later start
//     of the same job shuts the holder out, which can only be a leftover process.
//   - the fence: .lock's text names the incarnation that owns the directory. A writer checks it right before it
//     commits. commit.h stops a writer that stalls after the check: its renames go through a directory that the next
//     owner removes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/file.h"

namespace tokamak {

// One start of a run. `id` is unique and fit for file names. Starts of one batch job share `job` ("": no job); the
// later of two has more requeues or, with equal requeues, the higher attempt.
struct Incarnation {
  std::string id;
  std::string job;
  int64_t requeues = 0;  // times that the scheduler requeued the job
  int64_t attempt = 0;   // inside one allocation, counted by the script that starts the ranks

  bool follows(const Incarnation& other) const;  // a later start of the same job
};

// Reads TOKAMAK_JOB (several jobs of one run may share it, with one count of TOKAMAK_ATTEMPT), or SLURM_JOB_ID,
// SLURM_RESTART_COUNT and TOKAMAK_ATTEMPT; without them uses host, time and process. Error(kConfig) for a bad count.
Incarnation current_incarnation();

// The owner of the directory, according to the text of .lock.
enum class Fence { kOurs, kAnothers, kUnreadable };

// Describes, in one line, the process whose lock of `directory` a start of `incarnation` would wait for. "" if there is
// none, or only an earlier start of the same job, which it would shut out.
std::string run_in_the_way(const std::string& directory, const Incarnation& incarnation);

// Whether a process holds the lock of `directory`, without taking a lock. nullopt if there is no lock file, or if its
// holder runs on another host or in another container.
std::optional<bool> is_locked(const std::string& directory);

class DirectoryLock {
 public:
  // Waits up to `timeout` seconds for the holder to end, since a killed run takes a moment; then Error(kCheckpoint)
  // naming it. Shuts out at once a holder that this incarnation follows. The directory must exist.
  DirectoryLock(const std::string& directory, Incarnation incarnation, double timeout);

  void claim();  // writes the fence: no earlier holder can commit from here on
  Fence fence() const;

 private:
  bool acquire();  // false: another process holds it

  std::string path_;
  Incarnation incarnation_;
  std::string text_;
  Descriptor fd_;
};

}  // namespace tokamak
