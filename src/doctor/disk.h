// The directory of the checkpoints: it exists or can be created, all hosts see the same one, its free space, renames
// and locks suffice, and its write rate is known. The check works in a directory of its own, which it removes.
#pragma once

#include "doctor/check.h"

namespace tokamak::doctor {

struct DiskRateOptions {
  int64_t bytes = int64_t{64} << 20;
  double seconds = 4;
};

struct DiskOptions {
  std::string directory;  // the run's, with checkpoints/ in it; if it does not exist, its nearest parent is tried
  int64_t checkpoint_bytes = 0;                                // of one checkpoint; 0: unknown
  int64_t keep = 2;                                            // checkpoints that stay
  double seconds_to_appear = 3;                                // the age of a network file system's caches
  DiskRateOptions rate;                                        // for all ranks together: each writes its share
  std::function<int64_t(const std::string& path)> free_bytes;  // none: the file system's
};

CheckResult check_disk(Comm& comm, const RankHosts& peers, const DiskOptions& options);

// Free space that a run needs: its checkpoints and a fifth more, less the earlier ones that these will replace. It is
// at least one checkpoint, since a new one is committed before an old one is deleted.
int64_t needed_bytes(int64_t checkpoint_bytes, int64_t keep, int64_t held_bytes);

// Renames a file over another and a directory to a new name; a directory must not replace one that is not empty. The
// commit of a checkpoint (checkpoint/commit.h) needs all three. Returns the defect, or "".
std::string wrong_with_rename(const std::string& directory);

// flock must keep a second descriptor out until the first is closed (checkpoint/lock.h). Returns the defect, or "".
std::string wrong_with_lock(const std::string& directory);

// A lock on `path` for the lifetime of this object.
class HeldLock {
 public:
  explicit HeldLock(const std::string& path);  // creates the file
  ~HeldLock();
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;
  bool held() const { return held_; }

 private:
  int fd_ = -1;
  bool held_ = false;
};

// Writes pieces that double in size, each with fsync, until `bytes` are written or `seconds` have passed. Then it reads
// them back, past the page cache if the kernel allows it. Removes the name `path` before it writes, so a killed process
// leaves nothing. Error(kCheckpoint) if a call fails.
struct DiskRate {
  int64_t bytes = 0;         // written in all
  bool finished = false;     // all of the requested bytes
  double fsync_seconds = 0;  // for 4 KiB
  double write_rate = 0;     // bytes per second with fsync, of the largest piece
  double read_rate = 0;      // bytes per second
};
DiskRate measure_disk(const std::string& path, const DiskRateOptions& options);

}  // namespace tokamak::doctor
