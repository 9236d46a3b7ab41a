#include "tensor/param_table.h"

#include <algorithm>

#include "base/error.h"

namespace tokamak {

int64_t Matrix::count() const {
  int64_t sum = 0;
  for (const Param& part : parts) sum += part.shape.count();
  return sum;
}

Shape Matrix::shape() const {
  TOKAMAK_CHECK(!parts.empty(), name);
  if (parts[0].shape.rank() == 1) {
    return {count()};
  }
  return {count() / parts[0].shape[1], parts[0].shape[1]};
}

int64_t Unit::count() const {
  int64_t sum = 0;
  for (const Matrix& matrix : matrices) sum += matrix.count();
  return sum;
}

int64_t ParamTable::count() const {
  int64_t sum = 0;
  for (const Unit& unit : units) sum += unit.count();
  return sum;
}

int64_t ParamTable::clip_unit(int64_t unit) const {
  const auto in_layers =
      std::count_if(units.begin(), units.end(), [](const Unit& u) { return u.kind == UnitKind::kLayer; });
  if (unit == 0) return 0;
  if (unit <= in_layers) return 1 + (unit - 1) / units_per_layer;
  return unit - in_layers + in_layers / units_per_layer;
}

}  // namespace tokamak
