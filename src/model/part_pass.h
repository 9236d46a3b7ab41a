// One part of one layer in a forward or backward pass. It finds tensors by the indices of the part's tables. It gathers
// and reduces the units that hold the weights as the pass needs them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/ops.h"
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
  Tensor document_tables;  // DocumentTables of the micro-batch; empty: its attention reads none
  int64_t max_length;
  Tensor dx;  // (N, C): gradient of the residual stream; empty without backward
};

// The weights of a layer, and in backward their gradients.
class LayerWeights {
 public:
  // `norms`, `dnorms`: the norms unit's. `units`: the pass over the units, which outlives this.
  LayerWeights(const WeightIndex& index, int64_t l, const std::vector<Tensor>& norms, UnitPass& units)
      : index_(index), layer_(l), units_(units), weights_(index.vectors(l, norms)) {}
  void with_gradients(ShardedParameters& parameters, Stream& compute, const std::vector<Tensor>& dnorms) {
    parameters_ = &parameters;
    compute_ = &compute;
    gradients_ = index_.vectors(layer_, dnorms);
  }

  void use(size_t part, int piece);    // gathers the piece's matrices
  void begin(size_t part, int piece);  // likewise, and their gradients
  void end(size_t part, int piece);    // reduces the gradients of a unit with its last piece
  Tensor weight(size_t part, int at) const { return weights_[part][static_cast<size_t>(at)]; }
  Tensor gradient(size_t part, int at) const { return gradients_[part][static_cast<size_t>(at)]; }
  Write write() const { return gradient_.write; }

 private:
  const WeightIndex& index_;
  int64_t layer_;
  UnitPass& units_;
  ShardedParameters* parameters_ = nullptr;
  Stream* compute_ = nullptr;
  std::vector<std::vector<Tensor>> weights_, gradients_;  // [part][at]
  ShardedParameters::Gradient gradient_;
  int64_t open_ = -1;  // the unit of gradient_
};

struct PartPass {
  enum class Mode { kForward, kRecompute, kBackward };

  const PassInputs& in;
  Mode mode;
  int64_t layer;
  size_t part;
  Tensor x, out;                           // (N, C): the residual stream before and after the part
  std::span<const Tensor> activations;     // by ActivationRow::at
  std::span<const size_t> kept;            // by KeptRow::at: index into `overwritten`
  const PerKeptTensor<bool>& overwritten;  // by a later layer, or by the final norm in the buffer that they share
  LayerWeights& weights;

  Tensor a(int at) const { return activations[static_cast<size_t>(at)]; }
  Tensor w(int at) const { return weights.weight(part, at); }
  Tensor dw(int at) const { return weights.gradient(part, at); }  // vector gradients accumulate
  Write write() const { return weights.write(); }                 // of matrix gradients

  void use(int piece) const { weights.use(part, piece); }
  void begin(int piece) const { weights.begin(part, piece); }
  void end(int piece) const { weights.end(part, piece); }

  bool recomputes() const { return mode == Mode::kRecompute; }
  bool again(int at) const { return overwritten[kept[static_cast<size_t>(at)]]; }  // backward computes it again
  bool wants(int at) const { return !recomputes() || again(at); }                  // forward computes it
};

}  // namespace tokamak
