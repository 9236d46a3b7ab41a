#include "train/average_updates.h"

#include <algorithm>

#include "base/strings.h"
#include "optim/averages.h"

namespace tokamak {

std::vector<double> average_weights(const std::vector<AverageOptions>& options, const RunTable& table, int64_t step,
                                    std::map<std::string, AverageProgress>& progress) {
  std::vector<double> weights(options.size());
  for (size_t i = 0; i < options.size(); ++i) {
    const auto known = progress.find(options[i].name);
    const AverageProgress last = known == progress.end() ? AverageProgress() : known->second;
    const int64_t next =
        last.updates > 0 ? last.step + options[i].every
                         : length_in_steps(options[i].start, str("averages[", i, "].start").c_str(), table.run_steps());
    if (step < next) continue;
    weights[i] = average_weight(options[i], last.updates, table.tokens_after(step) - table.tokens_after(last.step));
    progress[options[i].name] = {.updates = last.updates + 1, .step = step};
  }
  return weights;
}

AverageChanges keep_averages_of(const std::vector<AverageOptions>& options, RunState& state) {
  AverageChanges changes;
  std::erase_if(state.averages, [&](const auto& saved) {
    const bool is_kept =
        std::any_of(options.begin(), options.end(), [&](const AverageOptions& one) { return one.name == saved.first; });
    if (!is_kept) changes.dropped.push_back(saved.first);
    return !is_kept;
  });
  for (const AverageOptions& one : options) {
    if (state.averages.count(one.name) == 0) changes.added.push_back(one.name);
  }
  return changes;
}

}  // namespace tokamak
