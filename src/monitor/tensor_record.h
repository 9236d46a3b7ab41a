// What a record says of a weight, of its gradient and of its update: which layer grows, which one dies, where the first
// number stopped being finite. tensors.jsonl and TensorBoard have the same numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace tokamak {

// Of finite elements, but for the count of the others; where there are none rms, min and max are not finite.
struct TensorSummary {
  double rms = 0;           // root mean square
  double min = 0, max = 0;  // f32
  int64_t non_finite = 0;
  int64_t zeros = 0;
  // counts[i] elements have 2^(first + i) <= |x| < 2^(first + i + 1), of bins that do not move from record to record; empty
  // ones at the ends are left out.
  int first = 0;
  std::vector<int64_t> counts;
};

struct TensorRecord {
  std::string name;  // as in checkpoints: "model.layers.3.self_attn.q_proj.weight"
  int64_t elements = 0;
  TensorSummary weights;    // after the step's update
  TensorSummary gradients;  // mean over the tokens of the step, before clipping
  TensorSummary updates;    // weights after the step less weights before it

  // How far a step has moved the weights, relative to them: around 1e-3 in training that goes well.
  double update_ratio() const {
    return weights.rms > 0 ? updates.rms / weights.rms : std::numeric_limits<double>::quiet_NaN();
  }
};

}  // namespace tokamak
