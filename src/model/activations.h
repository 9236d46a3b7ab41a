// Every buffer that forward and backward write, planned by name from the tables of the parts. The recompute mode
// decides which tensors each layer saves. Layers share all others and recompute them in backward.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/layer_table.h"
#include "model/recompute.h"
#include "tensor/arena.h"

namespace tokamak {

enum class Keep {
  kBackward,     // all that backward needs, per layer: KeptLayers at its most
  kLayerInputs,  // layer inputs, and of the rest what KeptLayers says; backward recomputes the others
  kNothing,      // inference: all layers of a kind share one layer's buffers
};

// Views for a micro-batch of N tokens, which may be shared (Keep).
struct Activations {
  struct Layer {
    Tensor x;                                // (N, C)   residual stream that enters the layer
    std::vector<std::vector<Tensor>> parts;  // [part][ActivationRow::at]
    std::vector<Tensor> outputs;             // (N, C)   of each part; of the last the next layer's x, or `last`
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
  // `kept` counts with Keep::kLayerInputs alone. Inputs of attention have `rows_behind` more rows than tokens
  // (Ops::rows_behind_attention), which no view shows.
  ActivationPlan(const LayerTable& layers, int64_t hidden, int64_t tokens, int64_t rows_behind, DType compute,
                 Keep keep, const KeptLayers& kept, MemoryPlan& plan);
  void commit(const Arena& arena);
  Activations first(int64_t tokens) const;  // views of the first `tokens` tokens of every buffer

  const KeptLayers& kept() const { return kept_; }
  // The tensors that backward of layer l must recompute: a later layer of its kind, or the final norm, has overwritten
  // the buffer that they share.
  const PerKeptTensor<bool>& recomputed(int64_t l) const { return recomputed_[static_cast<size_t>(l)]; }
  // The bytes of keeping each tensor in one layer, with alignment.
  static PerKeptTensor<int64_t> bytes_of_layer(const LayerTable& layers, int64_t tokens, int64_t rows_behind,
                                               DType compute);

 private:
  struct Buffer {
    MemoryPlan::Slot slot;
    Tensor whole;
  };
  struct View {
    ActivationRow row;
    size_t buffer;  // in buffers_
  };
  struct LayerViews {
    View x;
    std::vector<std::vector<View>> parts;  // one view for each row
  };
  Tensor view(const View& view, int64_t tokens) const;

  KeptLayers kept_;
  std::vector<Buffer> buffers_;
  std::vector<std::pair<Tensor Activations::*, View>> model_;
  std::vector<LayerViews> layers_;
  std::vector<PerKeptTensor<bool>> recomputed_;  // per layer
};

}  // namespace tokamak
