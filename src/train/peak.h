// What MFU is measured against: on a GPU the dense peak that its maker states; a CPU's rates depend on clock and
// other processes, so there they are those of a large GEMM and, for the operations of a trace, of a long copy, measured
// through the backend when the run starts, if anything needs them. Of a run's starts the best counts.
#pragma once

#include <string>

#include "backend/backend.h"
#include "train/run_config.h"

namespace tokamak {

struct Peak {
  double flops = 0;        // per second, of one rank; 0: neither stated nor measured
  std::string source;      // "the maker's dense peak", "a 1024^3 GEMM in BF16, measured now"
  double memory_rate = 0;  // of a CPU, bytes per second read and written; 0: not asked for
};

struct PeakOptions {
  DType compute = DType::kBF16;
  bool measured = true;  // where the device's maker states none
  bool memory = false;   // the memory's rate, too
};

PeakOptions peak_options(const RunConfig& config);  // what a start of this run measures

// Whether the run records MFU on this device.
bool reports_mfu(const RunConfig& config, const Device& device);

// On a CPU a GEMM is computed in any case, a small one if none is measured: what the library keeps for good is then in use.
// Where it measures: C = A B^T in the dtype, best of a few repetitions (about 0.2 s on two cores), and a copy.
Peak peak_of(Backend& backend, const PeakOptions& options);

// This start's peak, or a better one that an earlier start in metrics.jsonl has measured on as many ranks of this device.
Peak best_peak(const std::string& metrics_path, const Peak& measured, const Device& device, int ranks);

// Of the device's memory, while it measures; 0 where it does not.
int64_t peak_measurement_bytes(const Device& device, const PeakOptions& options);

}  // namespace tokamak
