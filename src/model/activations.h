// Every buffer that forward and backward write, planned by name from the tables of the parts. The recompute mode
// decides which tensors each layer saves. Layers share all others and recompute them in backward.
#pragma once

#include <cstdint>
#include <vector>

#include "model/layer_table.h"
#include "model/recompute.h"
#include "tensor/arena.h"

namespace tokamak {

enum class Passes { kForwardAndBackward, kForward };

// Views for a micro-batch of N tokens; layers may share buffers.
struct Activations {
  struct Layer {
    Tensor x;                                // (N, C)   residual stream that enters the layer
    std::vector<std::vector<Tensor>> parts;  // [part][ActivationRow::id]
    std::vector<Tensor> outputs;             // (N, C)   one per part; the last part's is the next layer's x, or `last`
  };
  std::vector<Layer> layers;
  Tensor last;        // (N, C)   residual stream that leaves the last layer
  Tensor rstd_final;  // (N) f32
  Tensor norm;        // (N, C)   output of the current normalisation, or its gradient
  Tensor token_loss;  // (N) f32
  Tensor dx;          // (N, C)   gradient of the residual stream; empty without backward
};

class ActivationPlan {
 public:
  // Without backward, layers of a kind share all buffers, and `kept` is ignored. Attention's inputs have `rows_behind`
  // more rows than tokens (Ops::rows_behind_attention). No view shows these rows.
  ActivationPlan(const LayerTable& layers, int64_t hidden, int64_t tokens, int64_t rows_behind, DType compute,
                 Passes passes, const KeptLayers& kept, MemoryPlan& plan);
  ActivationPlan(const ActivationPlan&) = delete;  // views_ points into tensors_
  ActivationPlan& operator=(const ActivationPlan&) = delete;
  void commit(const Arena& arena);
  // Views of the first `tokens` tokens of every buffer, until the next call.
  const Activations& first(int64_t tokens);

  const KeptLayers& kept() const { return kept_; }
  // The tensors that backward of layer l must recompute: a later layer of its kind, or the final norm, has overwritten
  // the buffer that they share.
  const PerKeptTensor<bool>& recomputed(int64_t l) const { return recomputed_[l]; }
  // The bytes of keeping each tensor in one layer, with alignment.
  static PerKeptTensor<int64_t> bytes_of_layer(const LayerTable& layers, int64_t tokens, int64_t rows_behind,
                                               DType compute);

 private:
  struct Buffer {
    ActivationRow row;
    MemoryPlan::Slot slot;
    Tensor whole;
  };
  struct View {
    Tensor* tensor;
    size_t buffer;  // in buffers_
  };

  KeptLayers kept_;
  std::vector<Buffer> buffers_;
  std::vector<PerKeptTensor<bool>> recomputed_;  // per layer
  Activations tensors_;
  std::vector<View> views_;
  int64_t tokens_ = -1;  // the argument of the latest first()
};

}  // namespace tokamak
