// A part of a decoder layer: attention or a feed-forward. It maps the residual stream x to x + f(x). It defines its
// rows of every table (weights, activations, kept tensors with the FLOPs that they spare), and both passes. So a new
// tensor of a layer changes one part. Initialisation, sharding, memory, recompute, FLOPs and plan read the tables
// through layer_table.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/attended.h"
#include "tensor/dtype.h"
#include "tensor/param_table.h"

namespace tokamak {

struct PartPass;
struct Workload;

// Each row of a table has an id, a value of the part's enum for that table. Forward and backward find tensors by these
// ids (part_pass.h).

enum class WeightPlace {
  kMatrix,     // in the layer's unit, or with UnitSize::kProjection in that of the part's piece
  kInputNorm,  // in the norms unit; each layer's input norms precede its other vectors
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
enum class Reader { kOthers, kAttention };        // kAttention may read rows behind the N (Ops::rows_behind_attention)
enum class Life {
  kKept,        // a buffer for each layer that keeps it, and one that all other layers share
  kKeptOrNorm,  // as kKept, but the other layers share the buffer of the model's final norm
  kOutput,      // as kKept, for the output of a part that is not the layer's last one
  kShared,      // one buffer for all layers
  kBackward,    // one buffer for all layers, absent without a backward pass
};

inline constexpr int kNotKept = -1;

struct ActivationRow {
  int id;
  const char* name;
  DType dtype;
  Layout layout;
  int64_t width;
  Life life;
  int kept_as = kNotKept;  // id of the KeptRow that says whether it is kept or recomputed
  Reader reader = Reader::kOthers;
};

// FLOPs without weights.
struct AttentionFlops {
  double per_pair = 0;  // of a token and one that it attends to
  int64_t window = 0;   // as in Attention (ops.h)
  double per_token(int64_t length) const { return per_pair * mean_attended(length, window); }  // of such documents
};

// A tensor that a layer may keep for backward instead of computing it again. Backward needs each of these tensors, kept
// or recomputed. So one spares the same FLOPs, whichever others are kept.
struct KeptRow {
  // kForward: a GEMM or attention of the forward pass; kStore: a norm, or a store by an operation of backward
  enum class Spares { kForward, kStore };
  int id;
  const char* name;
  Spares spares;
  double flops = 0;          // spared per token, without attention's
  AttentionFlops attention;  // spared
  int piece = 0;             // the piece whose matrices that operation reads
};

// An activation that ActivationStatistics measures.
struct WatchedRow {
  int id;            // ActivationRow
  const char* name;  // "attention"
};

class Part {
 public:
  virtual ~Part() = default;

  // Names of its groups of matrices, in forward's order of use. With UnitSize::kProjection each group is a unit.
  virtual std::vector<const char*> pieces() const = 0;
  virtual std::vector<WeightRow> weights(int64_t layer) const = 0;
  virtual std::vector<ActivationRow> activations(DType compute) const = 0;
  virtual std::vector<KeptRow> kept() const = 0;
  virtual std::vector<WatchedRow> watched() const { return {}; }
  virtual AttentionFlops attention_flops() const { return {}; }  // of forward
  // Raises the sizes of `largest` to those of the part's operations, so that their scratch memory suffices.
  virtual void widen(Workload& /*largest*/) const {}

  // Computes out = x + f(x); in a recomputation, only the KeptRows for which pass.computes() is true.
  virtual void forward(const PartPass& pass) const = 0;
  // On entry pass.in.dx is the gradient of `out`, on return that of x. Goes over the pieces in reverse.
  virtual void backward(const PartPass& pass) const = 0;
};

// A norm's weight (width), without weight decay. It begins where the norm multiplies by 1: at 1 - offset.
inline Matrix norm_weight(const std::string& name, int64_t width, float offset) {
  return {name, {{name, Shape{width}, 1.0 - double{offset}, 0.0, Decay::kNo}}};
}

}  // namespace tokamak
