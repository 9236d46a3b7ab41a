// Every buffer that forward and backward write, planned by name from one table (activations.cc). The recompute mode
// decides what each layer saves. Everything else is shared by layers and recomputed in backward.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/model_config.h"
#include "model/recompute.h"
#include "tensor/arena.h"

namespace tokamak {

enum class Keep {
  kBackward,     // all that backward needs, per layer: KeptLayers at its most
  kLayerInputs,  // layer inputs, and of the rest what KeptLayers says; backward recomputes the others
  kNothing,      // inference: all layers share one layer's buffers
};

struct LayerActivations {
  Tensor x;        // (N, C)               residual stream that enters the layer
  Tensor rstd1;    // (N) f32
  Tensor qkv;      // (N, (Hq + 2 Hkv) D)  rotated; the raw projection if Activations::rotated exists
  Tensor lse;      // (Hq, N) f32
  Tensor attn;     // (N, Hq D)
  Tensor mid;      // (N, C)               residual stream after attention
  Tensor rstd2;    // (N) f32
  Tensor gate_up;  // (N, 2 I)
  Tensor norm1;    // (N, C)               input of the QKV GEMM; Activations::norm where it is not kept
  Tensor norm2;    // (N, C)               input of the gate and up GEMM; likewise
  Tensor swiglu;   // (N, I)               in backward its gradient, too
};

struct Activations {
  std::vector<LayerActivations> layers;  // views may be shared, see Keep
  Tensor last;                           // (N, C)   residual stream that leaves the last layer
  Tensor rstd_final;                     // (N) f32
  Tensor norm;                           // (N, C)   output of the current normalisation, or its gradient
  Tensor token_loss;                     // (N) f32
  // With qk_norm only:
  Tensor rotated;  // (N, (Hq + 2 Hkv) D)  qkv of the current layer, normalised and rotated; absent in inference, where
                   //                      they overwrite the layer's qkv
  Tensor qk_rstd;  // (N (Hq + Hkv)) f32   query heads, then key heads
  // Backward only:
  Tensor dx;     // (N, C)   gradient of the residual stream
  Tensor dqkv;   // (N, (Hq + 2 Hkv) D)
  Tensor dattn;  // (N, Hq D)

  // The qkv that attention reads in layer l.
  Tensor rotated_of(size_t l) const { return rotated ? rotated : layers[l].qkv; }
  // Where layer l writes its result: the next layer's input.
  Tensor output_of(size_t l) const { return l + 1 < layers.size() ? layers[l + 1].x : last; }
};

class ActivationPlan {
 public:
  // `kept` counts with Keep::kLayerInputs alone. What attention reads has `rows_behind` more rows than tokens
  // (Ops::rows_behind_attention), which no view shows.
  ActivationPlan(const ModelConfig& config, int64_t tokens, int64_t rows_behind, DType compute, Keep keep,
                 const KeptLayers& kept, MemoryPlan& plan);
  void commit(const Arena& arena);
  Activations first(int64_t tokens) const;  // views of the first `tokens` tokens of every buffer

  const KeptLayers& kept() const { return kept_; }
  // What backward of layer l must compute again, since it has been overwritten: by a later layer, or norm1 and norm2 by
  // the final norm.
  PerKeptTensor<bool> recomputed(int64_t l) const;
  // What keeping each tensor takes in one layer, with alignment.
  static PerKeptTensor<int64_t> bytes_of_layer(const ModelConfig& config, int64_t tokens, int64_t rows_behind,
                                               DType compute);

 private:
  // Memory layout of a buffer for N tokens.
  enum class Layout { kRows, kPerToken, kByHead };  // (N, width), (N width), (width, N)
  enum class Reader { kOthers, kAttention };        // kAttention: it may read behind the rows
  template <class Owner>
  struct Entry {
    Tensor Owner::*tensor;
    const char* name;
    DType dtype;
    Layout layout;
    int64_t width;
    Reader reader = Reader::kOthers;
    KeptTensor kept_as = {};                   // of LayerActivations but x: kept and recomputed with this one
    Tensor Activations::*otherwise = nullptr;  // used by layers that do not keep it; null: a buffer that they share

    Shape shape(int64_t tokens) const;
    Shape planned_shape(int64_t tokens, int64_t rows_behind) const {
      return shape(reader == Reader::kAttention ? tokens + rows_behind : tokens);
    }
  };
  static std::vector<Entry<LayerActivations>> layer_table(const ModelConfig& config, DType compute);
  static std::vector<Entry<Activations>> shared_table(const ModelConfig& config, DType compute, Keep keep);

  int64_t own_buffers(const Entry<LayerActivations>& entry) const;

  struct Buffer {
    std::optional<MemoryPlan::Slot> slot;  // none: Entry::otherwise
    Tensor whole;
  };
  Keep keep_;
  int64_t last_layer_;  // L - 1
  KeptLayers kept_;
  std::vector<Entry<LayerActivations>> layer_table_;
  std::vector<Entry<Activations>> shared_table_;
  std::vector<std::vector<Buffer>> layers_;  // per layer, in the order of the table
  std::vector<Buffer> shared_;
};

}  // namespace tokamak
