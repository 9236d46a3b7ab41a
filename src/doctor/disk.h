// The directory of the checkpoints: there or creatable, one directory for all ranks, with enough free space, rename and
// locks that work, and at what rate it writes. Tried in a directory of the check's own, which it removes.
#pragma once

#include "doctor/check.h"
#include "doctor/disk_probes.h"

namespace tokamak::doctor {

struct DiskOptions {
  std::string directory;  // of the run, with checkpoints/ in it; may not exist yet: then its nearest parent is tried
  int64_t checkpoint_bytes = 0;  // of one checkpoint; 0: unknown
  int64_t keep = 2;              // checkpoints that stay
  double seconds_to_appear = 3;  // for what rank 0 wrote: caches of a network file system may be so old
  DiskRateOptions rate;          // of all ranks together: each writes its share
  std::function<int64_t(const std::string& path)> free_bytes;  // none: the file system's
};

CheckResult check_disk(Comm& comm, const RankHosts& peers, const DiskOptions& options);

// Free space that a run needs: its checkpoints and a fifth more, less what earlier ones hold already, as these will be
// replaced; but always one, since a checkpoint is committed before an older one goes.
int64_t needed_bytes(int64_t checkpoint_bytes, int64_t keep, int64_t held_bytes);

}  // namespace tokamak::doctor
