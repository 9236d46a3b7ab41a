// One part of one layer in a forward or backward pass. It finds tensors by the ids of the part's rows. It gathers and
// reduces the units that hold the weights as the pass needs them.
#pragma once

#include <cstdint>
#include <span>

#include "backend/ops.h"
#include "model/activation_statistics.h"
#include "model/batch_inputs.h"
#include "model/parameters.h"
#include "model/recompute.h"
#include "zero/sharded_parameters.h"
#include "zero/unit_pass.h"

namespace tokamak {

// Inputs that are the same for every layer of a micro-batch.
struct PassInputs {
  Stream& compute;
  Ops& ops;
  const DeviceBatch& batch;
  Tensor rope;             // (max_length, D) f32
  Tensor rope_local;       // likewise, of sliding layers; empty: `rope` is theirs, too
  Tensor document_tables;  // DocumentTables of the micro-batch; empty if attention reads none
  int64_t max_length;
  Tensor dx;                                // (N, C): gradient of the residual stream; empty without backward
  ActivationStatistics* watcher = nullptr;  // of this pass, if there is one
};

// The weights of a layer, and in backward their gradients.
class LayerWeights {
 public:
  // `norms`, `dnorms`: weights and gradients of the norms unit. All arguments outlive this.
  LayerWeights(const WeightIndex& index, int64_t l, UnitPass& units, std::span<const Tensor> norms,
               std::span<const Tensor> dnorms = {})
      : index_(index), layer_(l), units_(units), norms_(norms), dnorms_(dnorms) {}

  void use(size_t part, int piece) { matrices_ = units_.use(index_.layer(layer_, part, piece)); }
  void begin(size_t part, int piece);  // use() of the piece's matrices and their gradients
  void end(size_t part, int piece);    // reduces the gradients of a unit with its last piece
  // Matrices are those of the latest use() or begin().
  Tensor weight(size_t part, int id) const { return index_.find(layer_, part, id, matrices_, norms_); }
  Tensor gradient(size_t part, int id) const { return index_.find(layer_, part, id, gradient_.matrices, dnorms_); }
  Write write() const { return gradient_.write; }

 private:
  const WeightIndex& index_;
  int64_t layer_;
  UnitPass& units_;
  std::span<const Tensor> norms_, dnorms_, matrices_;
  ShardedParameters::Gradient gradient_;
  int64_t open_ = -1;  // the unit of gradient_
};

struct PartPass {
  enum class Mode { kForward, kRecompute, kBackward };

  const PassInputs& in;
  Mode mode;
  int64_t layer;
  size_t part;
  Tensor x, out;                          // (N, C): the residual stream before and after the part
  std::span<const Tensor> activations;    // by ActivationRow::id
  std::span<const size_t> kept_index;     // by KeptRow::id: index into `recomputed`
  const PerKeptTensor<bool>& recomputed;  // ActivationPlan::recomputed
  LayerWeights& weights;

  Tensor a(int id) const { return activations[id]; }
  Tensor w(int id) const { return weights.weight(part, id); }
  Tensor dw(int id) const { return weights.gradient(part, id); }  // gradients of vectors are accumulated
  Write write() const { return weights.write(); }                 // of matrix gradients

  void use(int piece) const { weights.use(part, piece); }
  void begin(int piece) const { weights.begin(part, piece); }
  void end(int piece) const { weights.end(part, piece); }

  bool recomputes() const { return mode == Mode::kRecompute; }
  // Whether backward finds the tensor of this KeptRow as forward left it.
  bool is_kept(int id) const { return !recomputed[kept_index[id]]; }
  // Whether Part::forward must compute the tensor of this KeptRow.
  bool computes(int id) const { return !recomputes() || !is_kept(id); }
};

}  // namespace tokamak
