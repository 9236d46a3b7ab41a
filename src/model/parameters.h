// The weights of a Llama decoder, with Hugging Face's names and shapes, grouped into units and fused matrices.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model_config.h"
#include "tensor/param_table.h"
#include "tensor/tensor.h"

namespace tokamak {

// Units in the order of the forward pass: embedding, layers, head (absent if tied), norms (one unit for all).
// A layer's matrices are qkv, o, gate_up, down. The norms unit lists, for each layer: input norm, post-attention norm
// and, if the config has them, the qkv bias and the query and key head norms. The final norm comes last. All of these
// are small vectors without weight decay.
ParamTable make_param_table(const ModelConfig& config);

// A layer's weights, or their gradients. A vector that the config lacks is empty.
struct LayerWeights {
  Tensor qkv;                              // ((Hq + 2 Hkv) D, C)
  Tensor o;                                // (C, Hq D)
  Tensor gate_up;                          // (2 I, C)
  Tensor down;                             // (C, I)
  Tensor input_norm, post_attention_norm;  // (C)
  Tensor qkv_bias;                         // ((Hq + 2 Hkv) D)
  Tensor q_norm, k_norm;                   // (D)
};

// Indices into a parameter table: units by kind, a unit's matrices by name, looked up once.
class WeightIndex {
 public:
  explicit WeightIndex(const ParamTable& table);

  int64_t embedding() const { return embedding_; }
  int64_t layer(int64_t l) const { return first_layer_ + l; }
  int64_t head() const { return head_; }  // the unit whose matrix the head uses
  int64_t norms() const { return norms_; }
  bool tied() const { return head_ == embedding_; }

  // The tensors of layer `l`, from its unit's matrices and the norms unit; weights or gradients.
  LayerWeights layer_weights(int64_t l, const std::vector<Tensor>& matrices, const std::vector<Tensor>& norms) const;
  Tensor final_norm(const std::vector<Tensor>& norms) const { return norms[final_norm_]; }

 private:
  struct Entry {
    size_t matrix;  // index in its unit
    Tensor LayerWeights::*weight;
  };
  int64_t embedding_ = 0, first_layer_ = 0, head_ = 0, norms_ = 0;
  std::vector<Entry> matrices_;              // the same for every layer
  std::vector<std::vector<Entry>> vectors_;  // per layer, in the norms unit
  size_t final_norm_ = 0;
};

}  // namespace tokamak
