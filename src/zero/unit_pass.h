// The units of a forward or backward pass in the order of their use. A pass acquires each unit when it is used and
// gathers the next one meanwhile.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "zero/sharded_parameters.h"

namespace tokamak {

class UnitPass {
 public:
  // `order`: the units in the order of use, no unit twice in succession. The last may be gathered without a use. All
  // arguments outlive this.
  UnitPass(ShardedParameters& parameters, Stream& compute, std::span<const int64_t> order)
      : parameters_(parameters), compute_(compute), next_(order) {}

  ShardedParameters& parameters() const { return parameters_; }
  Stream& compute() const { return compute_; }
  // Returns the whole weights of `unit`: the current unit, or the next one, which then becomes the current one.
  const std::vector<Tensor>& use(int64_t unit);
  // Releases the current unit and gathers the next two if there are buffers for them.
  void end();

 private:
  ShardedParameters& parameters_;
  Stream& compute_;
  std::span<const int64_t> next_;  // units that come after the current one
  int64_t current_ = 0;
  const std::vector<Tensor>* matrices_ = nullptr;  // of the current unit; null if none is in use
};

}  // namespace tokamak
