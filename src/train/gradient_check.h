// Computes a step's gradients twice and compares them bit for bit. What went wrong once, in a unit that computes, in
// memory or on the way to another rank, shows as a difference, and says on which rank: each compares its own losses and
// what it contributes to each sum over the ranks, before it is summed. A third computation settles which was right.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "train/step.h"

namespace tokamak {

class GradientCheck {
 public:
  explicit GradientCheck(Engine& engine);  // outlives this

  // How two computations of this rank differ; both empty if they do not.
  struct Difference {
    std::string own;       // "the loss; layer.2, layer.1": what this rank has computed
    std::string received;  // "layer.2": only its part of the sum over all ranks
  };
  struct Result {
    double attended = 0;  // as of run_step
    Difference difference;
  };
  // compute_gradients() with `first`, then with `second`, which yields the same micro-batches: its gradients remain. Both
  // gather all weights anew. Waits for the device.
  Result run(const NextBatch& first, const NextBatch& second, int64_t micro_batches);

  // Once more, after run(): these gradients remain. Whether they are, on this rank, those of one of the two before.
  bool settle(const NextBatch& third, int64_t micro_batches);

 private:
  // Of one computation, in host memory.
  struct Print {
    std::array<double, kStepSums> losses{};
    std::vector<int32_t> contributions;  // (units, 2), of whole gradients before they are summed; see Checksum in ops.h
    std::vector<int32_t> sums;           // (units, 2), of this rank's slices of the sums

    bool same_losses(const Print& other) const;
    bool operator==(const Print& other) const;
  };

  Print compute(const NextBatch& next, int64_t micro_batches, double& attended);
  std::string units_that_differ(const std::vector<int32_t>& a, const std::vector<int32_t>& b) const;

  Engine& engine_;
  std::unique_ptr<Arena> arena_;
  Tensor contributions_, sums_;  // (units, 2) i32
  Print first_, second_;         // of the last run()
};

}  // namespace tokamak
