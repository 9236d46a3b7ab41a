// The predicted step of a run on a machine: its real step, recorded and simulated.
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
  CostTerms terms;                      // of one step, each as if it ran alone
  double flops = 0, exchanged = 0;      // of one rank's step
  int64_t peak_bytes_per_rank = 0;      // of the device: the plan, and what libraries take
  int64_t available_bytes = 0;          // of the device, without the share that plans leave free
  int64_t free_bytes = 0;               // of the device, beside the peak; negative where it does not fit
  int64_t pinned_bytes_per_rank = 0;    // of the host, beside the device's; 0 on a CPU, whose memory is the host's
  std::vector<MemoryPlan::Group> memory;
  bool fits() const { return peak_bytes_per_rank <= available_bytes; }
};

// How far predicted tokens a second are from published ones: of the rows on which no constant was fitted (README.md).
struct PredictionError {
  double median = 0, ninth_decile = 0;  // as shares of the published value
  int rows = 0;
};
inline constexpr PredictionError kPublishedError = {0.049, 0.182, 150};

// What predictions for the machine are worth, as words after "predictions": of its row of the table, or of a file.
std::string accuracy_of(const Machine& machine);

// Of the config as it stands; micro_batch_size: auto is resolved for the machine's memory, as a start there would.
// Of many micro-batches three and four are simulated: the others between the first and the last are alike.
// Other auto keys are settled before (auto_choice.h). `trace` receives the simulated timeline of what was simulated.
Prediction predict(const RunConfig& config, const GlobalBatch& batch, int ranks, const Machine& stated,
                   std::string* trace = nullptr);

// The same for a run that may plan with `bytes` on each device.
Prediction predict(const RunConfig& config, const GlobalBatch& batch, int ranks, const Machine& stated, int64_t bytes,
                   std::string* trace = nullptr);

// Bytes that a run may plan with on each device of the machine.
int64_t plannable_bytes(const DryRun& run, const Machine& machine);

}  // namespace tokamak
