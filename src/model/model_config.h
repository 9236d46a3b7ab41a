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

// Norms of a part: before its matrices, after them (before its result joins the residual stream), or both.
enum class NormPlacement { kPre, kPost, kBoth };
inline const std::vector<std::string>& enum_names(NormPlacement) {
  static const std::vector<std::string> names = {"pre", "post", "both"};
  return names;
}

// Norm of queries and keys before RoPE: none, of each head, or of all heads of a token together.
enum class QkNormKind { kNone, kHead, kAll };
inline const std::vector<std::string>& enum_names(QkNormKind) {
  static const std::vector<std::string> names = {"none", "head", "all"};
  return names;
}
// The key was a bool once.
inline QkNormKind enum_of_bool(bool value, QkNormKind) { return value ? QkNormKind::kHead : QkNormKind::kNone; }

// The feed-forward's activation, by Hugging Face's names: SwiGLU or GeGLU.
enum class HiddenAct { kSilu, kGeluTanh };
inline const std::vector<std::string>& enum_names(HiddenAct) {
  static const std::vector<std::string> names = {"silu", "gelu_pytorch_tanh"};
  return names;
}

// How the matrices whose results join the residual stream begin: as all others, or smaller the deeper the model is.
enum class OutputInit { kSame, kDepth };
inline const std::vector<std::string>& enum_names(OutputInit) {
  static const std::vector<std::string> names = {"same", "depth"};
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
  double rope_local_base_freq = 0;      // rope_theta of sliding layers, unscaled; 0: as in full layers
  double rms_norm_eps = 1e-5;
  NormPlacement norm_placement = NormPlacement::kPre;
  bool norm_zero_centered = false;
  HiddenAct hidden_act = HiddenAct::kSilu;
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  QkNormKind qk_norm = QkNormKind::kNone;
  double query_pre_attn_scalar = 0;    // attention divides by its root; 0: head_size()
  double attn_logit_softcapping = 0;   // 0: none
  double final_logit_softcapping = 0;  // 0: none
  bool scale_embeddings = false;
  bool embedding_norm = false;
  bool tie_word_embeddings = false;
  double initializer_range = 0.02;
  OutputInit output_init = OutputInit::kSame;
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
    v("rope_local_base_freq", rope_local_base_freq,
      "rope_theta of sliding layers, without rope_scaling (Gemma 3, 2503.19786; OLMo 3); 0: that of full layers, with it");
    v("rms_norm_eps", rms_norm_eps, "added to the mean square in RMSNorm; keeps rows near zero finite");
    v("norm_placement", norm_placement,
      "pre: norms before attention and the feed-forward (Llama); post: after them (OLMo 2, 2501.00656); both: Gemma 2");
    v("norm_zero_centered", norm_zero_centered,
      "norms multiply by 1 + weight, and weights begin at 0 (Gemma, 2403.08295)");
    v("hidden_act", hidden_act,
      "activation of the feed-forward's gate: silu (SwiGLU) or gelu_pytorch_tanh (GeGLU, 2002.05202)");
    v("qkv_bias", qkv_bias, "add a bias to the query, key and value projections, as in Qwen2");
    v("o_bias", o_bias, "add a bias to attention's output projection; attention_bias of Llama is both");
    v("mlp_bias", mlp_bias, "add biases to the feed-forward's projections");
    v("qk_norm", qk_norm,
      "norm of queries and keys before RoPE; head: each head, as in Qwen3; all: a token's heads together, as in OLMo "
      "2; steadier training at large learning rates");
    v("query_pre_attn_scalar", query_pre_attn_scalar,
      "attention logits are divided by its square root (Gemma 2, 2408.00118); 0: by that of head_dim");
    v("attn_logit_softcapping", attn_logit_softcapping,
      "bound of attention logits, c tanh(x / c), against their growth (Gemma 2: 50); by our own kernels; 0: none");
    v("final_logit_softcapping", final_logit_softcapping, "bound of the head's logits (Gemma 2: 30); 0: none");
    v("scale_embeddings", scale_embeddings, "multiply embeddings by the square root of hidden_size (Gemma)");
    v("embedding_norm", embedding_norm,
      "norm after the embedding, for a steady residual stream (YaLM 100B; BLOOM, 2211.05100); export folds it");
    v("tie_word_embeddings", tie_word_embeddings,
      "the head reuses the embedding matrix: V C parameters less, which suits small models");
    v("initializer_range", initializer_range,
      "standard deviation of the initial matrices (normal, mean 0); larger values start with larger gradients");
    v("output_init", output_init,
      "initial deviation of o_proj and down_proj; depth: initializer_range / sqrt(2 L), as in GPT-2 and YaLM 100B");
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
  ModelConfig with_local_rope() const;  // its rope_theta and rope_scaling are those of sliding layers
  bool has_pre_norms() const { return norm_placement != NormPlacement::kPost; }
  bool has_post_norms() const { return norm_placement != NormPlacement::kPre; }
  double output_range() const;  // initial deviation of matrices whose results join the residual stream
  float norm_offset() const { return norm_zero_centered ? 1.0f : 0.0f; }  // of the weights of norms
  bool has_qk_norm() const { return qk_norm != QkNormKind::kNone; }

  // Every field that is out of range or contradicts another, with keys and values; empty if all are valid.
  std::vector<FieldError> problems() const;
  // Error(kConfig) with the first problem.
  void validate() const;
};

}  // namespace tokamak
