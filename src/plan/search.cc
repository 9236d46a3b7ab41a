#include "plan/search.h"

#include <algorithm>

#include "base/strings.h"
#include "train/memory_check.h"

namespace tokamak {

Choices search(const RunConfig& config, const GlobalBatch& batch, int ranks, const Machine& machine) {
  Choices choices;
  for (size_t mode = 0; mode < enum_names(RecomputeMode{}).size(); ++mode) {
    RunConfig tried = config;
    tried.activation_checkpoint.mode = static_cast<RecomputeMode>(mode);
    for (int64_t micro_batch = 1; micro_batch <= batch.sequences_per_rank; ++micro_batch) {
      if (batch.sequences_per_rank % micro_batch != 0) continue;
      tried.training.micro_batch_size = {micro_batch};
      const DryRun sizes(tried, batch, ranks);
      const bool fits = planned_bytes(sizes.memory(), sizes.device()) <= plannable_bytes(sizes, machine);
      if (fits) {
        choices.fitting.push_back(predict(tried, batch, ranks, machine));
      } else if (micro_batch == 1) {
        choices.others.push_back(predict(tried, batch, ranks, machine));
      }
      if (!fits) break;  // a larger one takes more
    }
  }
  std::stable_sort(choices.fitting.begin(), choices.fitting.end(),
                   [](const Prediction& a, const Prediction& b) { return a.step_seconds < b.step_seconds; });
  return choices;
}

std::string yaml_of(const Prediction& choice) {
  return str("training:\n  micro_batch_size: ", choice.shape.micro_batch,
             "\nactivation_checkpoint:\n  mode: ", enum_names(RecomputeMode{})[static_cast<size_t>(choice.recompute)],
             "\n");
}

}  // namespace tokamak
