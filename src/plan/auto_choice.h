// Chooses the keys that are auto: micro-batch, when gradients are reduced, layers that stay gathered and activations that
// are kept. Together they give the shortest predicted step that fits. `tokamak plan`, train and bench choose by this alone.
#pragma once

#include <vector>

#include "plan/prediction.h"
#include "train/auto_choice.h"

namespace tokamak {

// Ways that change communication alone are tried where at least this share of a step is exposed without them.
constexpr double kWorthTrying = 0.005;

struct ExplainedChoice : AutoChoice {
  std::string why;  // for the log, a line or two
};

struct Candidate {
  AutoChoice choice;
  Prediction prediction;
};

// Of one micro-batch size: what keeping each tensor of one layer takes, and the seconds that it saves in a step.
struct KeepValues {
  int64_t micro_batch = 1;
  PerKeptTensor<KeepCost> costs;
};

struct Candidates {
  std::vector<Candidate> fitting;  // the fastest first; of equal ones that of the fewest bytes
  std::vector<KeepValues> values;  // with mode: auto, of each micro-batch that was tried
  int64_t bytes = 0;               // that a plan may fill
};

// All that the config's auto keys allow and that fits into the bytes that are `available` (fillable_bytes() of them,
// where mode or keep_gathered is auto), each predicted: every one of tried_micro_batches(), every number of gathered
// layers, with reduce: auto both answers where several micro-batches expose communication, and with mode: auto the
// activations that save most seconds in what is left. Keys that are not auto stay as
// they are; micro_batch_size: auto and reduce: auto count here in any case.
Candidates candidates(const RunConfig& config, const GlobalBatch& batch, int ranks, const Machine& machine,
                      int64_t available);

// The sizes that are tried: the configured one, or those that a config may name, less those that make no fewer pieces
// than a smaller one.
std::vector<int64_t> tried_micro_batches(const TrainingOptions& training, const GlobalBatch& batch);

// Seconds that keeping each tensor of one layer saves in a step, and its bytes: of the operations of a step that is
// recorded with and without it.
PerKeptTensor<KeepCost> keep_seconds(const RunConfig& config, const GlobalBatch& batch, int64_t micro_batch, int ranks,
                                     const Machine& stated);

// For a start (runtime.machine has the rates): the fastest of candidates() in `total` bytes; where less is available, its
// micro-batch and reduce with what fits there. least_choice() where nothing fits.
// Error(kConfig) where the machine's rates are unknown.
ExplainedChoice choose(const ChoiceInputs& inputs);

// What rank 0 chooses, on every rank; `why` on rank 0 alone. SharedError where rank 0 fails. Collective.
ExplainedChoice choose_collectively(Comm& comm, const ChoiceInputs& inputs);

// The machine that a start goes by: `runtime.machine`, with auto the hardware table's row of this device.
Machine machine_of(const RuntimeOptions& runtime, const std::string& device);

}  // namespace tokamak
