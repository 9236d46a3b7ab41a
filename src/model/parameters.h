// The weights of a Llama decoder, in Hugging Face's names and shapes, grouped into units and fused matrices.
#pragma once

#include "model/model_config.h"
#include "tensor/param_table.h"

namespace tokamak {

// Units in the order of the forward walk: embedding, layers, head (absent if tied), norms (all of them in one unit).
// A layer's matrices are qkv, o, gate_up, down: their indices are below. Norms: input and post-attention norm of layer
// 0, of layer 1, ..., then the final norm.
ParamTable make_param_table(const ModelConfig& config);

enum LayerMatrix : size_t { kQkv = 0, kO = 1, kGateUp = 2, kDown = 3 };

struct UnitIndex {
  explicit UnitIndex(const ModelConfig& config) : layers(config.num_hidden_layers), tied(config.tie_word_embeddings) {}
  int64_t layers;
  bool tied;

  int64_t embedding() const { return 0; }
  int64_t layer(int64_t l) const { return 1 + l; }
  int64_t head() const { return tied ? embedding() : 1 + layers; }  // whose matrix the head multiplies with
  int64_t norms() const { return 1 + layers + (tied ? 0 : 1); }
  static size_t input_norm(int64_t l) { return static_cast<size_t>(2 * l); }
  static size_t post_attention_norm(int64_t l) { return static_cast<size_t>(2 * l + 1); }
  size_t final_norm() const { return static_cast<size_t>(2 * layers); }
};

}  // namespace tokamak
