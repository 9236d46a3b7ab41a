// Names the first value of a step that is not finite: rank, layer, operation, tensor, what went in, and the text that
// was read. It computes the step's gradients again, with a check before and after every operation (finite_check.h).
#pragma once

#include "data/loader.h"
#include "engine/engine.h"
#include "monitor/record.h"
#include "resilience/progress.h"

namespace tokamak {

struct TracedGradients {
  int64_t step = 0;
  LoaderOptions samples;  // of a loader that begins with this step
  double max_grad_norm = 0;
};

// The event "non_finite", the same on all ranks: `detail` is one line for people, and monitor/README.md lists the
// texts. Collective. The engine has the state that it had before the step. Weights and the optimizer's state do not
// change; gradients do. Takes some ten times a step's time, and ends its checks after ten minutes.
RunEvent trace_non_finite(Comm& comm, Engine& engine, const SampleSource& source, const TracedGradients& traced,
                          RunProgress* progress);

}  // namespace tokamak
