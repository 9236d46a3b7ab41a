// The weights of a model, sharded over the ranks of a group (ZeRO, Rajbhandari et al. 2020; persistent buffers and a
// separate unit of norms as in YaFSDP), and replicated over several groups (HSDP). Depends on units, not on the model.
//
// Each rank owns one contiguous slice of every unit: the fp32 master, its gradient, and the compute-dtype copy that
// gathers send. Whole units exist only in buffers; the policy sets their number (sharding_policy.h). The protocol,
// checked at run time:
//
//   begin_step()                       forgets the gradients of the last step
//   begin_microbatch(last)             says whether it is the step's last micro-batch
//   prefetch(u)                        may start gather(u) early
//   w = acquire(u) ... release(u)      whole weights, valid in between
//   g = gradient(u) ... reduce(u)      whole gradient: write it, then reduce it
//   begin_update(), then updated(u)    the optimizer writes masters and weights, in the order of update_parts()
//
// A unit that a buffer still holds is not gathered again. Gradients are reduced inside the shard group, into
// this rank's slice. The last micro-batch then reduces the slice over the replicas. Gathers and reductions run on their
// own streams, one of each at a time per group; events order them against the compute stream. An updated unit is
// gathered at once for the next step, unless an earlier unit needs its buffer first. In a shard group of one rank the
// slices are the whole units: nothing is gathered.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "comm/mesh.h"
#include "tensor/arena.h"
#include "tensor/param_table.h"
#include "tensor/unit_layout.h"
#include "zero/sharding_policy.h"
#include "zero/unit_buffers.h"

namespace tokamak {

struct ShardingOptions {
  DType compute = DType::kBF16;      // dtype of gathered weights
  DType reduce_dtype = DType::kF32;  // communication dtype of gradients
  bool gradients = true;             // false: weights only (generation, evaluation)
  ShardingPolicy policy;
};

// A part of the optimizer's update, reported by updated(): the slice of a unit, or the whole shard.
struct UpdatePart {
  static constexpr int64_t kAllUnits = -1;
  int64_t begin = 0;  // elements of the shard
  int64_t end = 0;
  int64_t unit = kAllUnits;
};

class ShardedParameters {
 public:
  // Plans its buffers. `table`, the groups of `mesh` and `backend` outlive this.
  ShardedParameters(const ParamTable& table, const Mesh& mesh, Backend& backend, const ShardingOptions& options,
                    MemoryPlan& plan);
  void commit(const Arena& arena);

  // Initialises this rank's slices from each weight's distribution: the same weights for any number of ranks.
  void initialize(uint64_t seed, Stream& stream);
  // Copies the masters to the compute dtype (after loading). Invalidates gathered weights.
  void masters_changed(Stream& stream);
  // The model computes with `values`, (shard_elements) f32, instead of the masters, until restore_masters(). Nothing
  // may write masters or gradients in between: if the compute dtype is f32, gradients() holds the masters.
  void substitute_masters(Tensor values, Stream& stream);
  void restore_masters(Stream& stream);  // to the bit: a compute copy is a function of the masters
  // Invalidates gathered weights: the next acquire() gathers them again.
  void weights_changed();

  // --- The update of masters and weights by the optimizer.
  // With overlap, the slices in the order of the next forward pass, whose gathers overlap the update. Without overlap,
  // the whole shard.
  std::vector<UpdatePart> update_parts() const;
  void begin_update(Stream& compute);                     // before `compute` writes: invalidates gathered weights
  void updated(const UpdatePart& part, Stream& compute);  // `compute` has written this part
  // The stream on which an optimizer exchanges tensors with other ranks, concurrently with `compute` and gathers.
  Stream& exchange_stream(Stream& compute) { return reductions(compute); }
  // The buffers of whole gradients, which an optimizer may use between begin_update() and the end of its step. Without
  // data before commit(); none where slices are whole.
  std::vector<Tensor> lend_gradient_buffers();

  // --- Whole weights. `compute` is the stream that will read them.
  // Does nothing if the only buffers hold a unit in use, or `keep`.
  void prefetch(int64_t unit, Stream& compute, int64_t keep = UnitBuffers::kNone);
  // One view per matrix of the unit, valid until release().
  const std::vector<Tensor>& acquire(int64_t unit, Stream& compute);
  void release(int64_t unit);
  void wait_gathered(Stream& compute);  // `compute` waits for all gathers so far

  // --- Whole gradients.
  struct Gradient {
    std::span<const Tensor> matrices;  // f32, one view per matrix; valid until the unit's next gradient()
    Write write = Write::kOverwrite;   // kOverwrite: contents are undefined; kAccumulate: add
  };
  void begin_step();                                  // forgets the gradients of the last step
  void begin_microbatch(bool last) { last_ = last; }  // without this call, each is the last
  bool last_microbatch() const { return last_; }      // the optimizer then changes the weights
  // The `write` that gradient() returns for every unit. The setter is for a single rank that replays a graph.
  Write gradient_mode() const { return units_.front().written ? Write::kAccumulate : Write::kOverwrite; }
  void set_gradient_mode(Write write);
  Gradient gradient(int64_t unit, Stream& compute);
  // Call it after the micro-batch has written the gradient. Adds the sum over the ranks to this rank's slice, now or in
  // the last micro-batch (ShardingPolicy::reduce_once).
  void reduce(int64_t unit, Stream& compute);
  void wait_reduced(Stream& compute);  // `compute` waits for all reductions so far
  // Each later reduction of unit u adds the checksum of this rank's contribution to row u. An empty tensor ends this. A
  // single rank reduces nothing.
  void record_contributions(Tensor checksums) { contributions_ = checksums; }  // (units, 2) i32

  DType compute() const { return options_.compute; }  // of weights()

  // --- This rank's shard, flat over all units.
  int64_t shard_elements() const { return shard_elements_; }
  Tensor master() const { return master_; }    // (shard_elements) f32
  Tensor gradients() const { return grad_; }   // (shard_elements) f32
  Tensor weights() const { return weights_; }  // (shard_elements) compute dtype; the master itself if f32
  int64_t slice_begin(int64_t unit) const { return at(unit).begin; }  // in the shard
  int64_t slice_elements(int64_t unit) const { return at(unit).elements; }
  // The part of the shard, or of a slice, that this rank sums. Replicas hold equal slices, and each sums one part.
  Tensor distinct(Tensor slice) const;

  const ParamTable& table() const { return table_; }
  const Mesh& mesh() const { return mesh_; }
  Backend& backend() { return backend_; }

 private:
  // This rank's slice of a unit.
  struct Slice {
    UnitLayout layout;
    int64_t begin = 0, elements = 0;     // of the shard
    std::vector<Tensor> weights = {};    // the whole unit's matrices, where they were last gathered
    std::vector<Tensor> gradients = {};  // the whole unit's gradients, where they were last written
    bool written = false;                // it has gradients of this step
    bool complete = false;               // its gradients are summed over all replicas
  };
  const Slice& at(int64_t unit) const { return units_.at(unit); }
  Slice& at(int64_t unit) { return units_.at(unit); }
  const Unit& unit_at(int64_t unit) const { return table_.units.at(unit); }
  bool whole() const { return mesh_.shard().size() == 1; }  // slices are whole units
  Tensor slice_of(Tensor shard, int64_t unit) const;
  // Makes `matrices` the views of the unit in `whole`.
  void view(Tensor whole, int64_t unit, std::vector<Tensor>& matrices) const;
  void gather(int64_t unit, Stream& compute, int64_t keep = UnitBuffers::kNone);
  Stream& gathers(Stream& compute) { return options_.policy.overlap ? *gather_stream_ : compute; }
  Stream& reductions(Stream& compute) { return options_.policy.overlap ? *reduce_stream_ : compute; }
  Tensor whole_gradient(int64_t unit);  // this rank's, before the reduction
  void clear_padding(Tensor whole, int64_t unit, Stream& compute);
  void reduce_in_shard_group(int64_t unit, Stream& stream);
  void reduce_over_replicas(int64_t unit, Stream& stream);

  const ParamTable& table_;
  bool shapes_share_buffers_;
  Mesh mesh_;
  Backend& backend_;
  ShardingOptions options_;
  std::vector<Slice> units_;
  int64_t shard_elements_ = 0;

  MemoryPlan::Slot master_slot_, weights_slot_, grad_slot_;
  std::optional<MemoryPlan::Slot> staging_slot_;  // absent if every unit is reduced once a step
  std::optional<MemoryPlan::Slot> scratch_slot_;  // absent if the groups need none
  Tensor master_, weights_, grad_, staging_, scratch_;
  Tensor contributions_;                         // (units, 2) i32, or none
  std::optional<UnitBuffers> weight_buffers_;    // absent where slices are whole
  std::optional<UnitBuffers> gradient_buffers_;  //
  bool last_ = true;                             // the micro-batch is the step's last

  std::unique_ptr<Stream> gather_stream_, reduce_stream_;  // absent without overlap
  std::unique_ptr<Event> compute_done_, gather_done_, reduce_done_;
};

}  // namespace tokamak
