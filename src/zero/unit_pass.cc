#include "zero/unit_pass.h"

#include "base/error.h"

namespace tokamak {

const std::vector<Tensor>& UnitPass::use(int64_t unit) {
  const auto at = [&](int64_t i) { return order_[static_cast<size_t>(i)]; };
  if (in_use_ && at(next_ - 1) == unit) return matrices_;
  if (in_use_) end();
  TOKAMAK_CHECK(left() > 0 && at(next_) == unit, "unit ", unit, " is not the next of this pass");
  matrices_ = parameters_.acquire(unit, compute_);
  in_use_ = true;
  ++next_;
  if (left() > 0) parameters_.prefetch(at(next_), compute_);
  return matrices_;
}

void UnitPass::end() {
  const auto at = [&](int64_t i) { return order_[static_cast<size_t>(i)]; };
  TOKAMAK_CHECK(in_use_, "no unit of this pass is in use");
  parameters_.release(at(next_ - 1));
  in_use_ = false;
  if (left() > 1) {
    parameters_.prefetch(at(next_), compute_, at(next_ + 1));
    parameters_.prefetch(at(next_ + 1), compute_, at(next_));
  } else if (left() > 0) {
    parameters_.prefetch(at(next_), compute_);
  }
}

}  // namespace tokamak
