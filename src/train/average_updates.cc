#include "train/average_updates.h"

#include "base/strings.h"
#include "optim/averages.h"

namespace tokamak {

std::vector<double> average_weights(const std::vector<AverageOptions>& options, const RunTable& table, int64_t step,
                                    RunState& state) {
  std::vector<double> weights(options.size());
  for (size_t i = 0; i < options.size(); ++i) {
    const AverageOptions& one = options[i];
    const AverageProgress* const known = state.find_average(one.name);
    const AverageProgress last = known == nullptr ? AverageProgress() : *known;
    const int64_t next = known != nullptr
                             ? last.step + one.every
                             : length_in_steps(one.start, str("averages[", i, "].start").c_str(), table.run_steps());
    if (step < next) continue;
    weights[i] = average_weight(one, last.updates, table.tokens_after(step) - table.tokens_after(last.step));
    std::erase_if(state.averages, [&](const AverageProgress& progress) { return progress.name == one.name; });
    state.averages.push_back({.name = one.name, .updates = last.updates + 1, .step = step});
  }
  return weights;
}

}  // namespace tokamak
