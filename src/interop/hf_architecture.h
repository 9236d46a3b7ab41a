// The classes of transformers that a Tokamak model can be: one row each, with what the class fixes and the values of
// its config.json's absent keys (transformers' configuration_*.py).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "model/model_config.h"

namespace tokamak {

// How config.json says which layers have windows.
enum class HfWindows {
  kNone,        // no layer has one
  kAllLayers,   // all layers, unless sliding_window is null
  kLayerTypes,  // layer_types, or else all layers but every `full_every`-th, unless sliding_window is null
  kLastLayers,  // with use_sliding_window: layer_types, or else the layers from max_window_layers on
};

struct HfArchitecture {
  const char* name;
  const char* model_type;
  const char* transformers;     // the oldest version that has the class and reads our keys
  bool qkv_bias = false;        // always
  bool attention_bias = false;  // whether it has the key: biases of all of attention's projections
  bool mlp_bias = false;        // likewise, of the feed-forward's
  QkNormKind qk_norm = QkNormKind::kNone;
  NormPlacement norm_placement = NormPlacement::kPre;
  bool norm_zero_centered = false;
  HiddenAct hidden_act = HiddenAct::kSilu;
  bool scale_embeddings = false;
  HfWindows windows = HfWindows::kNone;
  bool no_rope_layers = false;  // whether it has the list
  bool rope_by_type = false;    // whether full and sliding layers have rotary embeddings of their own
  // Defaults of absent keys.
  int64_t head_dim = 0;  // 0: hidden_size / num_attention_heads
  int64_t kv_heads = 0;  // 0: num_attention_heads
  int64_t full_every = 0;
  double rope_theta = 10000;
  double rope_local_theta = 0;       // of sliding layers, with rope_by_type
  double query_pre_attn_scalar = 0;  // 0: it has no such key
  std::optional<double> attn_cap;    // attn_logit_softcapping; absent: it has no such key
  std::optional<double> final_cap;   // final_logit_softcapping, likewise; 0: null
  bool tie_word_embeddings = false;
};

std::span<const HfArchitecture> hf_architectures();

// The first row that can say all of the model's switches. Error(kConfig), naming them, if there is none.
const HfArchitecture& hf_architecture(const ModelConfig& model);

}  // namespace tokamak
