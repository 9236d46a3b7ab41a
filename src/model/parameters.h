// The weights of a Llama decoder, in Hugging Face's names and shapes, grouped into units and fused matrices.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model_config.h"
#include "tensor/param_table.h"
#include "tensor/tensor.h"

namespace tokamak {

// Units in the order of the forward pass: embedding, layers, head (absent if tied), norms (all of them in one unit).
// A layer's matrices are qkv, o, gate_up, down. Norms: of layer 0, of layer 1, ... the input and the post-attention
// norm, then, where the config has them, the bias of qkv and the norms of the query and the key heads; last of all the
// final norm. All are vectors, small and without weight decay.
ParamTable make_param_table(const ModelConfig& config);

// A layer's weights, or their gradients. A vector that the config does not have is empty.
struct LayerWeights {
  Tensor qkv;                              // ((Hq + 2 Hkv) D, C)
  Tensor o;                                // (C, Hq D)
  Tensor gate_up;                          // (2 I, C)
  Tensor down;                             // (C, I)
  Tensor input_norm, post_attention_norm;  // (C)
  Tensor qkv_bias;                         // ((Hq + 2 Hkv) D)
  Tensor q_norm, k_norm;                   // (D)
};

// Where a table's weights are: units by their kind, a unit's matrices by their names, looked up once.
class WeightIndex {
 public:
  explicit WeightIndex(const ParamTable& table);

  int64_t embedding() const { return embedding_; }
  int64_t layer(int64_t l) const { return first_layer_ + l; }
  int64_t head() const { return head_; }  // whose matrix the head multiplies with
  int64_t norms() const { return norms_; }
  bool tied() const { return head_ == embedding_; }

  // Of layer `l`, from the matrices of its unit and those of the unit of norms; either weights or gradients.
  LayerWeights layer_weights(int64_t l, const std::vector<Tensor>& matrices, const std::vector<Tensor>& norms) const;
  Tensor final_norm(const std::vector<Tensor>& norms) const { return norms[final_norm_]; }

 private:
  struct Entry {
    size_t matrix;  // of its unit
    Tensor LayerWeights::*weight;
  };
  int64_t embedding_ = 0, first_layer_ = 0, head_ = 0, norms_ = 0;
  std::vector<Entry> matrices_;              // of any layer
  std::vector<std::vector<Entry>> vectors_;  // of each layer, in the unit of norms
  size_t final_norm_ = 0;
};

}  // namespace tokamak
