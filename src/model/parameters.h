// The weights of a Llama decoder, in Hugging Face's names and shapes, grouped into units and fused matrices.
#pragma once

#include "model/model_config.h"
#include "tensor/param_table.h"

namespace tokamak {

// Units in the order of the forward pass: embedding, layers, head (absent if tied), norms (all of them in one unit).
// A layer's matrices are qkv, o, gate_up, down: their indices are below. Norms: of layer 0, of layer 1, ... the input
// and the post-attention norm, then, where the config has them, the bias of qkv and the norms of the query and the key
// heads; last of all the final norm. All are vectors, small and without weight decay.
ParamTable make_param_table(const ModelConfig& config);

enum LayerMatrix : size_t { kQkv = 0, kO = 1, kGateUp = 2, kDown = 3 };

struct UnitIndex {
  explicit UnitIndex(const ModelConfig& config)
      : layers(config.num_hidden_layers),
        tied(config.tie_word_embeddings),
        bias(config.qkv_bias ? 1 : 0),
        norms_of_layer(2 + bias + (config.qk_norm ? 2 : 0)) {}
  int64_t layers;
  bool tied;
  int64_t bias;            // 1 where qkv has one
  int64_t norms_of_layer;  // vectors of each layer in the unit of norms

  int64_t embedding() const { return 0; }
  int64_t layer(int64_t l) const { return 1 + l; }
  int64_t head() const { return tied ? embedding() : 1 + layers; }  // whose matrix the head multiplies with
  int64_t norms() const { return 1 + layers + (tied ? 0 : 1); }
  size_t input_norm(int64_t l) const { return static_cast<size_t>(norms_of_layer * l); }
  size_t post_attention_norm(int64_t l) const { return input_norm(l) + 1; }
  size_t qkv_bias(int64_t l) const { return input_norm(l) + 2; }                            // if there is one
  size_t q_norm(int64_t l) const { return input_norm(l) + 2 + static_cast<size_t>(bias); }  // if there is one
  size_t k_norm(int64_t l) const { return q_norm(l) + 1; }
  size_t final_norm() const { return input_norm(layers); }
};

}  // namespace tokamak
