#include "model/part_pass.h"

namespace tokamak {

void LayerWeights::use(size_t part, int piece) {
  index_.put(layer_, part, piece, units_.use(index_.layer(layer_, part, piece)), weights_);
}

void LayerWeights::begin(size_t part, int piece) {
  use(part, piece);
  const int64_t unit = index_.layer(layer_, part, piece);
  if (unit != open_) gradient_ = parameters_->gradient(unit, *compute_);
  open_ = unit;
  index_.put(layer_, part, piece, gradient_.matrices, gradients_);
}

void LayerWeights::end(size_t part, int piece) {
  if (!index_.begins_unit(part, piece)) return;  // backward goes on in the same unit
  units_.end();                                  // gathers before the reduction, which must not delay the next weights
  parameters_->reduce(open_, *compute_);
}

}  // namespace tokamak
