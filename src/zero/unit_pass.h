// The units of a forward or backward pass in the order of their use. Each is acquired when it is used; the one after it is
// gathered meanwhile.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "zero/sharded_parameters.h"

namespace tokamak {

class UnitPass {
 public:
  // `order`: as the units will be used; no two neighbours are equal, and the last may be one that is only gathered. It, the
  // parameters and `compute` outlive this.
  UnitPass(ShardedParameters& parameters, Stream& compute, std::span<const int64_t> order)
      : parameters_(parameters), compute_(compute), order_(order) {}

  // The whole weights of the unit: the current one, or the next in the order, which becomes it.
  const std::vector<Tensor>& use(int64_t unit);
  // Releases the current unit, and gathers the next two as far as there are buffers for them.
  void end();
  int64_t left() const { return std::ssize(order_) - next_; }  // units that come after the current one

 private:
  ShardedParameters& parameters_;
  Stream& compute_;
  std::span<const int64_t> order_;
  int64_t next_ = 0;  // in the order
  bool in_use_ = false;
  std::vector<Tensor> matrices_;  // of the current unit
};

}  // namespace tokamak
