// Checkpoints and failures of a run at scale: the time of a save, the best interval, and the share of the wall clock
// left for training. Every assumption is a field with its source.
#pragma once

#include <cstdint>

namespace tokamak {

struct ReliabilityAssumptions {
  // Llama 3 (arXiv 2407.21783, section 3.3.4): 419 unexpected interruptions in 54 days on 16,384 H100.
  double gpu_seconds_per_failure = 16384.0 * 54 * 86400 / 419;
  double restart_seconds = 600;        // to detect the failure, start processes and load
  double copy_rate = 20e9;             // bytes per second of a GPU to pinned host memory: PCIe 4.0 x16, measured rates
  double storage_rate_per_node = 2e9;  // bytes per second that a node writes to the shared file system
};

struct Reliability {
  double checkpoint_bytes = 0;       // of all ranks
  double stall_seconds = 0;          // a step's wait for a save: with `async` the copy to host memory
  double write_seconds = 0;          // until a save is on disk
  double mttf_seconds = 0;           // of the whole job
  double best_interval_seconds = 0;  // Young (1974), Daly (2006): sqrt(2 stall mttf); not below write_seconds
  double ettr = 0;                   // effective training time ratio at that interval
};

// 1 - stall / interval - (interval / 2 + restart) / mttf, to first order in a failure (Kokolis et al., arXiv
// 2410.21680, section 4); at least 0.
double expected_ettr(double interval, double stall, double restart, double mttf);

Reliability reliability_of(int64_t checkpoint_bytes, int ranks, int gpus_per_node, bool async,
                           const ReliabilityAssumptions& assumptions = {});

}  // namespace tokamak
