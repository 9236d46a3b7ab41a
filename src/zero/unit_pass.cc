#include "zero/unit_pass.h"

#include "base/error.h"

namespace tokamak {

const std::vector<Tensor>& UnitPass::use(int64_t unit) {
  if (matrices_ != nullptr && current_ == unit) return *matrices_;
  if (matrices_ != nullptr) end();
  TOKAMAK_CHECK(!next_.empty() && next_[0] == unit, "unit ", unit, " is not the next of this pass");
  matrices_ = &parameters_.acquire(unit, compute_);
  current_ = unit;
  next_ = next_.subspan(1);
  if (!next_.empty()) parameters_.prefetch(next_[0], compute_);
  return *matrices_;
}

void UnitPass::end() {
  TOKAMAK_CHECK(matrices_ != nullptr, "no unit of this pass is in use");
  parameters_.release(current_);
  matrices_ = nullptr;
  if (next_.size() > 1) {
    parameters_.prefetch(next_[0], compute_, next_[1]);
    parameters_.prefetch(next_[1], compute_, next_[0]);
  } else if (!next_.empty()) {
    parameters_.prefetch(next_[0], compute_);
  }
}

}  // namespace tokamak
