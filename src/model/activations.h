// Every buffer that forward and backward write, planned by name from one table (activations.cc). What is saved per layer
// depends on the recompute mode; what is not saved is shared by all layers and computed again in backward (normalisations
// and SwiGLU always are).
#pragma once

#include <cstdint>
#include <vector>

#include "model/model_config.h"
#include "tensor/arena.h"

namespace tokamak {

enum class Keep {
  kBackward,     // what backward needs, per layer
  kLayerInputs,  // layer inputs only; backward runs the layer forward again
  kNothing,      // inference: one layer's buffers, used by all
};

struct LayerActivations {
  Tensor x;        // (N, C)               residual stream that enters
  Tensor rstd1;    // (N) f32
  Tensor qkv;      // (N, (Hq + 2 Hkv) D)  rotated; where Activations::rotated is, as the projection leaves them
  Tensor lse;      // (Hq, N) f32
  Tensor attn;     // (N, Hq D)
  Tensor mid;      // (N, C)               residual stream after attention
  Tensor rstd2;    // (N) f32
  Tensor gate_up;  // (N, 2 I)
};

struct Activations {
  std::vector<LayerActivations> layers;  // views may be shared, see Keep
  Tensor last;                           // (N, C)   residual stream that leaves the last layer
  Tensor rstd_final;                     // (N) f32
  Tensor norm;                           // (N, C)   output of the normalisation at hand, or its gradient
  Tensor swiglu;                         // (N, I)   output of the SwiGLU at hand, or its gradient
  Tensor token_loss;                     // (N) f32
  // With qk_norm only:
  Tensor rotated;  // (N, (Hq + 2 Hkv) D)  qkv of the layer at hand, normalised and rotated; not in inference, where
                   //                      they replace the layer's qkv
  Tensor qk_rstd;  // (N (Hq + Hkv)) f32   of its query heads, then of its key heads
  // Backward only:
  Tensor dx;     // (N, C)   gradient of the residual stream
  Tensor dqkv;   // (N, (Hq + 2 Hkv) D)
  Tensor dattn;  // (N, Hq D)

  // What attention reads in layer l.
  Tensor rotated_of(size_t l) const { return rotated ? rotated : layers[l].qkv; }
  // Where layer l writes its result: the next layer's input.
  Tensor output_of(size_t l) const { return l + 1 < layers.size() ? layers[l + 1].x : last; }
};

class ActivationPlan {
 public:
  ActivationPlan(const ModelConfig& config, int64_t tokens, DType compute, Keep keep, MemoryPlan& plan);
  void commit(const Arena& arena);
  Activations first(int64_t tokens) const;  // views of the first `tokens` tokens of every buffer

 private:
  // How a buffer lies in memory for N tokens.
  enum class Layout { kRows, kPerToken, kByHead };  // (N, width), (N width), (width, N)
  template <class Owner>
  struct Entry {
    Tensor Owner::*tensor;
    const char* name;
    DType dtype;
    Layout layout;
    int64_t width;

    Shape shape(int64_t tokens) const;
  };
  static std::vector<Entry<LayerActivations>> layer_table(const ModelConfig& config, DType compute);
  static std::vector<Entry<Activations>> shared_table(const ModelConfig& config, DType compute, Keep keep);

  struct Buffer {
    MemoryPlan::Slot slot;
    Tensor whole;
  };
  std::vector<Entry<LayerActivations>> layer_table_;
  std::vector<Entry<Activations>> shared_table_;
  std::vector<std::vector<Buffer>> layers_;  // of each layer, in the order of the table
  std::vector<Buffer> shared_;
};

}  // namespace tokamak
