// The dimensions of a decoder. Field names are those of Hugging Face's LlamaConfig.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fields.h"
#include "model/mup.h"
#include "model/rope_scaling.h"

namespace tokamak {

class Part;
struct ModelConfig;

// The kind of a layer: its parts, made for a config, in the order of forward.
struct LayerKind {
  const char* name;
  std::vector<std::unique_ptr<const Part>> (*make_parts)(const ModelConfig& config);
};

// Which tokens of its document a token attends to: all up to itself, or the last model.sliding_window of them.
enum class LayerType { kFull, kSliding };
inline const std::vector<std::string>& enum_names(LayerType) {
  static const std::vector<std::string> names = {"full_attention", "sliding_attention"};
  return names;
}

struct ModelConfig {
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;  // 0: as many as attention heads
  int64_t head_dim = 0;             // 0: hidden_size / num_attention_heads
  int64_t vocab_size = 0;
  int64_t max_position_embeddings = 2048;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  int64_t sliding_window = 0;           // 0: none
  std::vector<LayerType> layer_types;   // repeated over the layers; empty: all sliding if there is a window, else full
  std::vector<int64_t> no_rope_layers;  // 1: with RoPE, 0: without; repeated over the layers; empty: all with
  double rms_norm_eps = 1e-5;
  bool qkv_bias = false;
  bool qk_norm = false;
  bool tie_word_embeddings = false;
  double initializer_range = 0.02;
  MupOptions mup;
  std::vector<const LayerKind*> pattern;  // not a key: layer l is of kind *pattern[l % size]; empty: by the keys above

  template <class Visitor>
  void fields(Visitor& v) {
    v("hidden_size", hidden_size,
      "width of the residual stream, C; parameters and FLOPs of a layer grow with C^2; required");
    v("intermediate_size", intermediate_size,
      "width of the SwiGLU feed-forward, I; two thirds of a layer's parameters at 8/3 C; required");
    v("num_hidden_layers", num_hidden_layers, "decoder layers, L; required");
    v("num_attention_heads", num_attention_heads, "query heads, Hq; required");
    v("num_key_value_heads", num_key_value_heads,
      "key and value heads, Hkv, a divisor of Hq; fewer shrink the KV cache and QKV projection, at some loss in "
      "quality; 0: Hq");
    v("head_dim", head_dim, "width of one head, D, even; 0: hidden_size / num_attention_heads");
    v("vocab_size", vocab_size,
      "rows of the embedding, V; a multiple of 128 makes the fastest GEMMs; 0: the tokenizer's, from the data "
      "manifest");
    v("max_position_embeddings", max_position_embeddings,
      "longest sequence of the model; generation stops there, and data.sequence_length may exceed it only with dynamic "
      "rope_scaling; costs no memory");
    v("rope_theta", rope_theta,
      "base of the rotary embedding's frequencies (Su et al. 2021); larger values suit longer contexts");
    v("rope_scaling", rope_scaling, "scaling of those frequencies for longer contexts");
    v("sliding_window", sliding_window,
      "tokens that a token attends to in sliding layers, itself included (Mistral, 2310.06825); fewer save time and "
      "KV cache; 0: none");
    v("layer_types", layer_types,
      "full_attention or sliding_attention, repeated over the layers; []: all slide if there is a sliding_window");
    v("no_rope_layers", no_rope_layers,
      "1: rotary embeddings, 0: none (SmolLM3); repeated over the layers; []: all have them");
    v("rms_norm_eps", rms_norm_eps, "added to the mean square in RMSNorm; keeps rows near zero finite");
    v("qkv_bias", qkv_bias,
      "add a bias to the query, key and value projections, as in Qwen2; the output projection has none");
    v("qk_norm", qk_norm,
      "normalise each query and key head before RoPE, as in Qwen3; steadier training at large learning rates");
    v("tie_word_embeddings", tie_word_embeddings,
      "the head reuses the embedding matrix: V C parameters less, which suits small models");
    v("initializer_range", initializer_range,
      "standard deviation of the initial matrices (normal, mean 0); larger values start with larger gradients");
    v("mup", mup, "transfer of learning rates from a small base model to wider and deeper ones");
  }

  // Resolved values of fields where 0 means "derived".
  int64_t kv_heads() const { return num_key_value_heads > 0 ? num_key_value_heads : num_attention_heads; }
  int64_t head_size() const { return head_dim > 0 ? head_dim : hidden_size / num_attention_heads; }
  int64_t q_width() const { return num_attention_heads * head_size(); }  // Hq D
  int64_t kv_width() const { return kv_heads() * head_size(); }          // Hkv D
  int64_t qkv_width() const { return q_width() + 2 * kv_width(); }       // (Hq + 2 Hkv) D
  bool slides(int64_t l) const;                                          // whether attention of layer l has a window
  bool rotates(int64_t l) const;                                         // whether layer l has rotary embeddings

  // Every field that is out of range or contradicts another, with keys and values; empty if all are valid.
  std::vector<FieldError> problems() const;
  // Error(kConfig) with the first problem.
  void validate() const;
};

}  // namespace tokamak
