// The directory of the checkpoints: it exists or can be created, all hosts see the same one, its free space, renames and
// locks suffice, and its write rate is known. The check works in a directory of its own, which it removes.
#pragma once

#include "doctor/check.h"
#include "doctor/disk_probes.h"

namespace tokamak::doctor {

struct DiskOptions {
  std::string directory;  // the run's, with checkpoints/ in it; if it does not exist, its nearest parent is tried
  int64_t checkpoint_bytes = 0;                                // of one checkpoint; 0: unknown
  int64_t keep = 2;                                            // checkpoints that stay
  double seconds_to_appear = 3;                                // the age of a network file system's caches
  DiskRateOptions rate;                                        // for all ranks together: each writes its share
  std::function<int64_t(const std::string& path)> free_bytes;  // none: the file system's
};

CheckResult check_disk(Comm& comm, const RankHosts& peers, const DiskOptions& options);

// Free space that a run needs: its checkpoints and a fifth more, less the earlier ones that these will replace. It is at
// least one checkpoint, since a new one is committed before an old one is deleted.
int64_t needed_bytes(int64_t checkpoint_bytes, int64_t keep, int64_t held_bytes);

}  // namespace tokamak::doctor
