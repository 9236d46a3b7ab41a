#include "optim/own_weights.h"

#include <algorithm>

#include "tensor/unit_layout.h"

namespace tokamak {

std::vector<OwnWeight> own_weights(const ShardedParameters& parameters) {
  std::vector<OwnWeight> own;
  int64_t unit_first = 0;  // index in the model
  for (int64_t u = 0; const Unit& unit : parameters.table().units) {
    const int64_t slice = parameters.slice_elements(u);
    const int64_t before = parameters.mesh().shard().rank() * slice;  // elements of the unit on lower ranks
    for (size_t weight = 0; const FlatParam& flat : flat_params(unit)) {
      const int64_t begin = std::max(flat.begin, before), end = std::min(flat.end, before + slice);
      if (begin < end) {
        const int64_t shift = parameters.slice_begin(u) - before;
        own.push_back({u, weight, begin + shift, end + shift, begin - flat.begin, unit_first + begin});
      }
      ++weight;
    }
    unit_first += UnitLayout(unit).slice(1);  // aligned, as slices are: the CUDA kernel draws for four elements at once
    ++u;
  }
  return own;
}

}  // namespace tokamak
