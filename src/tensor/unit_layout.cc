#include "tensor/unit_layout.h"

#include "base/error.h"

namespace tokamak {

namespace {

int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

}  // namespace

UnitLayout::UnitLayout(const Unit& unit) {
  for (const Matrix& matrix : unit.matrices) {
    offsets.push_back(round_up(count, kAlignment));
    count = offsets.back() + matrix.count();
  }
}

int64_t UnitLayout::slice(int ranks, int parts) const {
  return round_up((count + ranks - 1) / ranks, kAlignment * parts);
}

std::vector<FlatParam> flat_params(const Unit& unit) {
  const UnitLayout layout(unit);
  std::vector<FlatParam> flat;
  for (size_t m = 0; m < unit.matrices.size(); ++m) {
    int64_t begin = layout.offsets[m];
    for (const Param& part : unit.matrices[m].parts) {
      flat.push_back({&part, begin, begin + part.shape.count()});
      begin = flat.back().end;
    }
  }
  return flat;
}

}  // namespace tokamak
