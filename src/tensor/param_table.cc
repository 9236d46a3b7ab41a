#include "tensor/param_table.h"

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

}  // namespace tokamak
