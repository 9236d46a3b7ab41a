#include "train/bad_steps.h"

#include "base/error.h"
#include "base/log.h"

namespace tokamak {

void BadSteps::see(const StepOutcome& outcome) {
  if (outcome.applied) {
    in_a_row_ = 0;
    return;
  }
  ++in_a_row_;
  log::warning("step ", outcome.step, ": loss ", outcome.loss, ", gradient norm ", outcome.grad_norm,
               ": the update is skipped (", in_a_row_, " in a row)");
  if (in_a_row_ < most_in_a_row_) return;
  fail(
      Kind::kNumerics,
      str("step ", outcome.step, ": loss ", outcome.loss, " and gradient norm ", outcome.grad_norm, "; ", in_a_row_,
          " steps in a row were not finite (resilience.max_bad_steps ", most_in_a_row_, ")"),
      "resume from an older checkpoint with a lower optimizer.lr or training.max_grad_norm, or look at the data there");
}

}  // namespace tokamak
