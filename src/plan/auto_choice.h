// Chooses the auto keys: micro-batch, reduce, gathered layers and kept activations. Together they give the shortest
// predicted step that fits. `tokamak plan`, train and bench all use this.
#pragma once

#include <vector>

#include "plan/prediction.h"
#include "train/auto_choice.h"

namespace tokamak {

// Variants that only change communication are tried if at least this share of a step is exposed without them.
constexpr double kWorthTrying = 0.005;

struct ExplainedChoice : AutoChoice {
  std::string why;  // for the log, a line or two
};

struct Candidate {
  AutoChoice choice;
  Prediction prediction;
};

// For one micro-batch size: the bytes of keeping each tensor of a layer, and the seconds that it saves in a step.
struct KeepValues {
  int64_t micro_batch = 1;
  PerKeptTensor<KeepCost> costs;
};

struct Candidates {
  std::vector<Candidate> fitting;  // the fastest first; of equal ones, that of the fewest bytes
  std::vector<KeepValues> values;  // with mode: auto, for each micro-batch tried
  int64_t bytes = 0;               // that a plan may fill
};

// Predicts every combination of the config's auto keys that fits into `available` bytes (fillable_bytes() of them if
// mode or keep_gathered is auto). It tries every one of tried_micro_batches() and every number of gathered layers. It
// tries both values of reduce if several micro-batches expose communication. With mode: auto, the activations that save
// most seconds fill the rest. Other keys stay; micro_batch_size: auto and reduce: auto are chosen in any case.
Candidates candidates(const RunConfig& config, const GlobalBatch& batch, int ranks, const Machine& machine,
                      int64_t available);

// The micro-batches to try: the configured one, or all that a config may name. If several need equally many
// micro-batches per step, only the smallest.
std::vector<int64_t> tried_micro_batches(const TrainingOptions& training, const GlobalBatch& batch);

// Seconds that keeping each tensor of one layer saves in a step, and its bytes, from steps recorded with and without
// it.
PerKeptTensor<KeepCost> keep_seconds(const RunConfig& config, const GlobalBatch& batch, int64_t micro_batch, int ranks,
                                     const Machine& stated);

// The choice depends on these alone. Bytes are what a plan may fill, the same on every rank.
struct ChoiceInputs {
  RunConfig config;  // complete (run_plan.h)
  GlobalBatch batch;
  int ranks = 1;
  int ranks_per_node = 1;
  std::string device;     // as it describes itself
  int64_t total = 0;      // the same at each start: decides micro-batch and reduce, on which the bits depend
  int64_t available = 0;  // now: decides gathered layers and kept activations
};

// For a start, with the rates of runtime.machine: the fastest of candidates() in `total` bytes. If less is available,
// it keeps that choice's micro-batch and reduce, and chooses the other keys to fit. least_choice() if nothing fits.
// Error(kConfig) if the rates are unknown.
ExplainedChoice choose(const ChoiceInputs& inputs);

// Rank 0's choice, on every rank; `why` on rank 0 alone. SharedError if rank 0 fails. Collective.
ExplainedChoice choose_collectively(Comm& comm, const ChoiceInputs& inputs);

// The machine of a start: `runtime.machine`; with auto, the hardware table's row of this device.
Machine machine_of(const RuntimeOptions& runtime, const std::string& device);

}  // namespace tokamak
