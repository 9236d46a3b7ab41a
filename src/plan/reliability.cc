#include "plan/reliability.h"

#include <algorithm>
#include <cmath>

namespace tokamak {

double expected_ettr(double interval, double stall, double restart, double mttf) {
  return std::max(0.0, 1 - stall / interval - (interval / 2 + restart) / mttf);
}

Reliability reliability_of(int64_t checkpoint_bytes, int ranks, int gpus_per_node, bool async,
                           const ReliabilityAssumptions& assumptions) {
  Reliability r;
  r.checkpoint_bytes = double(checkpoint_bytes);
  const double share = r.checkpoint_bytes / ranks;
  const double nodes = std::ceil(double(ranks) / gpus_per_node);
  r.write_seconds = r.checkpoint_bytes / nodes / assumptions.storage_rate_per_node;
  r.stall_seconds = async ? share / assumptions.copy_rate : r.write_seconds;
  r.mttf_seconds = assumptions.gpu_seconds_per_failure / ranks;
  // Saves do not overlap: a save that is due while another is being written waits for it.
  r.best_interval_seconds = std::max(std::sqrt(2 * r.stall_seconds * r.mttf_seconds), r.write_seconds);
  r.ettr = expected_ettr(r.best_interval_seconds, r.stall_seconds, assumptions.restart_seconds, r.mttf_seconds);
  return r;
}

}  // namespace tokamak
