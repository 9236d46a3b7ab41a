// Computes a step's gradients twice and compares them bit for bit. An error of a processor, of memory or of a transfer
// shows as a difference. Each rank compares its own losses and its contribution to each sum over the ranks, before it
// is summed, so the difference names the rank. A third computation settles which of the two was right.
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

  struct Result {
    double attended = 0;  // as of run_step
    // How two computations of this rank differ; both empty if they do not.
    std::string own;       // "the loss; layer.2, layer.1": what this rank has computed
    std::string received;  // "layer.2": only its part of the sum over all ranks
  };
  // compute_gradients() with `first`, then with `second`, which yields the same micro-batches: its gradients remain.
  // Both gather all weights again. Waits for the device.
  Result run(const NextBatch& first, const NextBatch& second, int64_t micro_batches);

  // A third computation, after run(): its gradients remain. True if, on this rank, they equal one of the first two.
  bool settle(const NextBatch& third, int64_t micro_batches);

 private:
  // The checksums of one computation, in host memory.
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
