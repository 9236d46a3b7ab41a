// The file system calls that checkpoints need, tried in a directory of the caller.
#pragma once

#include <cstdint>
#include <string>

namespace tokamak::doctor {

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

// Writes pieces that double in size, each with fsync, until `bytes` are written or `seconds` have passed, then reads them
// back, past the page cache if the kernel allows it. Removes the name `path` before it writes, so a killed process leaves
// nothing. Error(kCheckpoint) if a call fails.
struct DiskRate {
  int64_t bytes = 0;         // written in all
  bool finished = false;     // all of the requested bytes
  double fsync_seconds = 0;  // for 4 KiB
  double write_rate = 0;     // bytes per second with fsync, of the largest piece
  double read_rate = 0;      // bytes per second
};
struct DiskRateOptions {
  int64_t bytes = int64_t{64} << 20;
  double seconds = 4;
};
DiskRate measure_disk(const std::string& path, const DiskRateOptions& options);

}  // namespace tokamak::doctor
