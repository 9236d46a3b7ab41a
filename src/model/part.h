// A part of a decoder layer: attention or a feed-forward. It maps the residual stream x to x + f(x). It owns its rows
// of every table (weights, activations, kept tensors with the FLOPs that they spare), forward and backward. So a new
// tensor of a layer changes one part. Initialisation, sharding, memory, recompute, FLOPs and plan read the tables
// through layer_table.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/param_table.h"

namespace tokamak {

struct PartPass;
struct Workload;

// A part's rows have ids, from an enum of the part for each table. Forward and backward find tensors by them
// (part_pass.h).

enum class WeightPlace {
  kMatrix,     // in the layer's unit, or with UnitSize::kProjection in that of the part's piece
  kInputNorm,  // in the norms unit: of each layer first these, then the vectors
  kVector,
};

struct WeightRow {
  int id;
  WeightPlace place;
  Matrix matrix;
  int piece = 0;
};

// Memory of an activation for N tokens.
enum class Layout { kRows, kPerToken, kByHead };  // (N, width), (N width), (width, N)
enum class Reader { kOthers, kAttention };  // kAttention: it may read Ops::rows_behind_attention() rows behind them
enum class Life {
  kKept,        // a buffer in each layer that keeps it, one for all others
  kKeptOrNorm,  // likewise, but the others use the buffer of the model's final norm
  kOutput,      // as kKept: the part's output, where another part follows in the layer
  kShared,      // one buffer for all layers
  kBackward,    // likewise, and only where there is a backward pass
};

inline constexpr int kNotKept = -1;

struct ActivationRow {
  int id;
  const char* name;
  DType dtype;
  Layout layout;
  int64_t width;
  Life life;
  int kept_as = kNotKept;  // id of the KeptRow with which it is kept and recomputed
  Reader reader = Reader::kOthers;
};

// A tensor that a layer may keep for backward instead of computing it again. Backward needs each of these tensors, kept
// or recomputed. So one spares the same FLOPs, whichever others are kept.
struct KeptRow {
  enum class Spares { kForward, kStore };  // an operation of the forward pass; a store by an operation of backward
  int id;
  const char* name;
  Spares spares;
  double flops = 0;               // spared per token
  double flops_per_attended = 0;  // spared per token and token that it attends to
  int piece = 0;                  // whose matrices the operation reads
};

class Part {
 public:
  virtual ~Part() = default;

  // Names of groups of matrices, in the order in which forward uses them: the units of UnitSize::kProjection.
  virtual std::vector<const char*> pieces() const = 0;
  virtual std::vector<WeightRow> weights(int64_t layer) const = 0;
  virtual std::vector<ActivationRow> activations(DType compute) const = 0;
  virtual std::vector<KeptRow> kept() const = 0;
  virtual double flops_per_attended() const { return 0; }  // of forward, per token; weights count by themselves
  // Raises the sizes of `largest` to those of the part's operations, whose scratch memory they determine.
  virtual void widen(Workload& /*largest*/) const {}

  // out = x + f(x). In a recomputation: only the tensors that pass.computes().
  virtual void forward(const PartPass& pass) const = 0;
  // On entry pass.dx is the gradient of `out`, on return that of x. Pieces in reverse, each between begin() and end().
  virtual void backward(const PartPass& pass) const = 0;
};

// A norm's weight (width): ones, without weight decay.
inline Matrix norm_weight(const std::string& name, int64_t width) {
  return {name, {{name, Shape{width}, 1.0, 0.0, Decay::kNo}}};
}

}  // namespace tokamak
