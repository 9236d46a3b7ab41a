#include "train/state_slices.h"

namespace tokamak {

ShardPlace shard_place(const Comm& comm) { return {.index = comm.rank(), .count = comm.size()}; }

std::vector<UnitSlices> state_slices(Assembly& assembly) {
  ShardedParameters& parameters = assembly.parameters();
  std::vector<UnitSlices> units;
  for (size_t u = 0; u < assembly.table().units.size(); ++u) {
    const int64_t begin = parameters.slice_begin(static_cast<int64_t>(u));
    const int64_t end = begin + parameters.slice_elements(static_cast<int64_t>(u));
    UnitSlices unit{&assembly.table().units[u], {{"master", parameters.master().flat(begin, end)}}};
    if (assembly.trains()) {
      unit.slices.push_back({"exp_avg", assembly.optimizer().exp_avg().flat(begin, end)});
      unit.slices.push_back({"exp_avg_sq", assembly.optimizer().exp_avg_sq().flat(begin, end)});
    }
    units.push_back(std::move(unit));
  }
  return units;
}

}  // namespace tokamak
