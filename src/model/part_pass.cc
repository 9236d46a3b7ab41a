#include "model/part_pass.h"

namespace tokamak {

void LayerWeights::begin(size_t part, int piece) {
  use(part, piece);
  const int64_t unit = index_.layer(layer_, part, piece);
  if (unit != open_) gradient_ = units_.parameters().gradient(unit, units_.compute());
  open_ = unit;
}

void LayerWeights::end(size_t part, int piece) {
  if (!index_.begins_unit(part, piece)) return;  // backward goes on in the same unit
  units_.end();                                  // first enqueues gathers, which the reduction must not delay
  units_.parameters().reduce(open_, units_.compute());
}

}  // namespace tokamak
