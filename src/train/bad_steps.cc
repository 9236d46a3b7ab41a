#include "train/bad_steps.h"

#include "comm/collective_error.h"

namespace tokamak {

void BadSteps::see(const StepOutcome& outcome) {
  if (outcome.applied && !outcome.zeroed) {
    in_a_row_ = 0;
    return;
  }
  ++in_a_row_;
  if (in_a_row_ < most_in_a_row_) return;
  throw SharedError(Kind::kNumerics,
                    str("step ", outcome.step, ": loss ", outcome.loss, " and gradient norm ", outcome.grad_norm, "; ",
                        in_a_row_, " steps in a row were bad (resilience.max_bad_steps ", most_in_a_row_, ")"),
                    advice_(outcome.step - in_a_row_ + 1));
}

}  // namespace tokamak
