// Statistics of each named weight, its gradient, its update and its part of the optimizer's state, at the steps that
// ask for them. Each rank measures the pieces of weights in its slices; replicas divide the pieces of their slice.
// One collective adds the results up, so each element counts once for any number of ranks. Fused matrices are split
// by name, as in checkpoints.
//
//   see_gradients()    call it when gradients are reduced and not yet clipped.
//   see_update()       call it when masters are updated, and gradients() holds their changes (ops.h, AdamW::updates).
//   take()             returns the results of the last see_update(), in host memory; once, before the next gradients.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/tensor_sums.h"
#include "zero/sharded_parameters.h"
#include "zero/state_tensor.h"

namespace tokamak {

enum class Measured : int { kWeights = 0, kGradients = 1, kUpdates = 2 };
inline constexpr int kMeasured = 3;

struct WeightStatistics {
  std::string name;  // "model.layers.3.self_attn.q_proj.weight"
  int64_t elements = 0;
  std::array<TensorSums, kMeasured> sums;
  std::vector<std::pair<std::string, TensorSums>> state;  // the parts that the weight has: "exp_avg"

  const TensorSums& of(Measured what) const { return sums[static_cast<size_t>(what)]; }
};

class ShardStatistics {
 public:
  // Plans its buffers. `parameters` and `state`, the optimizer's, outlive this.
  ShardStatistics(ShardedParameters& parameters, const std::vector<StateTensor>& state, MemoryPlan& plan);
  void commit(const Arena& arena);

  // Measures gradients / tokens. `tokens` (1) f64: the sum over all ranks (ops.h, kSumTargets).
  void see_gradients(Stream& compute, Tensor tokens);
  // Collective. Enqueues the copy of the results to the host.
  void see_update(Stream& compute);

  struct Result {
    std::vector<WeightStatistics> weights;  // in the order of the table
    double seconds = 0;                     // device time of all its measurements and the collective
  };
  Result take();                       // waits for that step, not for later work
  void forget() { waiting_ = false; }  // drops the results not yet taken

 private:
  // The part of a weight in one slice. It is contiguous, because weight and slice are.
  struct Piece {
    int64_t number = 0;  // among the pieces of all ranks
    int64_t weight = 0, unit = 0;
    int64_t begin = 0, end = 0;  // elements of this rank's slice of the unit
  };
  struct Weight {
    std::string name;
    int64_t elements = 0;
    int64_t first = 0, last = 0;    // its pieces are first .. last - 1
    int64_t unit = 0, in_unit = 0;  // the unit, and the weight's number there
  };

  void measure(Measured what, Tensor shard, Stream& compute, Tensor divisor = {});
  // The piece's values of the `row`-th of Measured, or after these of the optimizer's state.
  void measure(int64_t row, const Piece& piece, Tensor values, Stream& compute, Tensor divisor);
  bool has(const StateTensor& state, const Weight& weight) const;
  TensorSums sums_of(int64_t row, size_t weight) const;  // on the host
  int64_t values_each() const;                           // the elements of values_ for one row
  int64_t rows() const { return kMeasured + std::ssize(state_); }

  ShardedParameters& parameters_;
  const std::vector<StateTensor>& state_;
  std::vector<Weight> weights_;
  std::vector<Piece> own_;
  int64_t pieces_ = 0;  // the number of pieces of all ranks
  // For each row: the statistics of each piece, then the magnitudes of each weight. One rank fills in a piece, and the
  // others have zeros. So the sum over the ranks also keeps minima and maxima.
  Tensor values_;   // (rows x (pieces kStatistics + weights kMagnitudeBins)) f64
  Tensor on_host_;  // a pinned copy of values_
  MemoryPlan::Slot values_slot_, on_host_slot_;
  std::unique_ptr<Event> arrived_;
  std::unique_ptr<Timestamp> begin_, paused_, resumed_, end_;
  bool waiting_ = false;  // for take()
};

}  // namespace tokamak
