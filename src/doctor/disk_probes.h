// What a file system must do for checkpoints, tried in a directory that is the caller's. Each returns what is wrong, or
// "". The hosts' own view of one directory is checked in disk.cc.
#pragma once

#include <cstdint>
#include <string>

namespace tokamak::doctor {

// A file renamed over another one, a directory to a new name, and no directory over one that is not empty: the commit of
// a checkpoint stands on these (checkpoint/commit.h).
std::string wrong_with_rename(const std::string& directory);

// flock: a second descriptor must wait for the first (checkpoint/lock.h).
std::string wrong_with_lock(const std::string& directory);

// A lock on `path` while it lives.
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

// Writes with fsync in pieces that double in size, until `bytes` are written or `seconds` have passed, then reads it
// back, past the page cache where the kernel obeys. The file has no name any more while it is written: a killed process
// leaves nothing. Error(kCheckpoint) where a call fails.
struct DiskRate {
  int64_t bytes = 0;         // written in all
  bool finished = false;     // `bytes` as asked for
  double fsync_seconds = 0;  // of 4 KiB
  double write_rate = 0;     // bytes per second with fsync, of the largest piece
  double read_rate = 0;      // bytes per second
};
struct DiskRateOptions {
  int64_t bytes = int64_t{64} << 20;
  double seconds = 4;
};
DiskRate measure_disk(const std::string& directory, const DiskRateOptions& options);

}  // namespace tokamak::doctor
