// Predicts a run's step on a machine: records the real step and simulates it.
#pragma once

#include <optional>

#include "plan/dry_run.h"
#include "plan/simulator.h"

namespace tokamak {

struct Prediction {
  BatchShape shape;
  RecomputeMode recompute = RecomputeMode::kNone;
  KeptLayers kept;
  ParallelismOptions parallelism;
  double step_seconds = 0, exposed_communication_seconds = 0;
  double tokens_per_second_per_gpu = 0;
  double mfu_full = 0, mfu_causal = 0;  // of the machine's dense peak for the compute dtype
  CostTerms terms;                      // of one step
  double flops = 0, exchanged = 0;      // of one rank's step
  int64_t peak_bytes_per_rank = 0;      // of the device: plan and libraries
  int64_t available_bytes = 0;          // of the device, without the share that plans leave free
  int64_t free_bytes = 0;               // of the device, beyond the peak; negative if the plan does not fit
  int64_t pinned_bytes_per_rank = 0;    // of host memory, in addition; 0 on a CPU
  std::vector<MemoryPlan::Group> memory;
  bool fits() const { return peak_bytes_per_rank <= available_bytes; }
};

// The error of predicted tokens per second against published runs on which no constant was fitted (README.md).
struct PredictionError {
  double median = 0, ninth_decile = 0;  // as shares of the published value
  int rows = 0;
};
inline constexpr PredictionError kPublishedError = {0.049, 0.182, 150};

// The accuracy of predictions for the machine, as words after "predictions".
std::string accuracy_of(const Machine& machine);

// Predicts the config as configured; micro_batch_size: auto is resolved for the machine's memory, as at a start there.
// Steps of more than four micro-batches are extrapolated from simulated steps of three and four, since all but the
// first and the last are identical. Other auto keys are settled before (auto_choice.h). `trace` receives the simulated
// timeline.
Prediction predict(const RunConfig& config, const GlobalBatch& batch, int ranks, const Machine& stated,
                   std::string* trace = nullptr);

// As the first predict(), for a run that may plan with `bytes` on each device.
Prediction predict(const RunConfig& config, const GlobalBatch& batch, int ranks, const Machine& stated, int64_t bytes,
                   std::string* trace = nullptr);

// Bytes that a run may plan with on each device of the machine.
int64_t plannable_bytes(const DryRun& run, const Machine& machine);

}  // namespace tokamak
