#include "interop/hf_architecture.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr HfArchitecture kArchitectures[] = {
    {.name = "LlamaForCausalLM",
     .model_type = "llama",
     .transformers = "4.46.0",
     .attention_bias = true,
     .mlp_bias = true},
    {.name = "Qwen2ForCausalLM",
     .model_type = "qwen2",
     .transformers = "4.46.0",
     .qkv_bias = true,
     .windows = HfWindows::kLastLayers},
    {.name = "Qwen3ForCausalLM",
     .model_type = "qwen3",
     .transformers = "4.46.0",
     .attention_bias = true,
     .qk_norm = QkNormKind::kHead,
     .windows = HfWindows::kLastLayers,
     .head_dim = 128},
    {.name = "MistralForCausalLM",
     .model_type = "mistral",
     .transformers = "4.46.0",
     .windows = HfWindows::kAllLayers,
     .kv_heads = 8},
    {.name = "MinistralForCausalLM",
     .model_type = "ministral",
     .transformers = "5.0.0",
     .windows = HfWindows::kLayerTypes,
     .kv_heads = 8},
    {.name = "SmolLM3ForCausalLM",
     .model_type = "smollm3",
     .transformers = "4.53.0",
     .attention_bias = true,
     .mlp_bias = true,
     .no_rope_layers = true,
     .kv_heads = 4,
     .rope_theta = 2000000,
     .tie_word_embeddings = true},
    {.name = "Olmo2ForCausalLM",
     .model_type = "olmo2",
     .transformers = "4.47.0",
     .attention_bias = true,
     .qk_norm = QkNormKind::kAll,
     .norm_placement = NormPlacement::kPost},
    {.name = "Olmo3ForCausalLM",
     .model_type = "olmo3",
     .transformers = "5.0.0",
     .attention_bias = true,
     .qk_norm = QkNormKind::kAll,
     .norm_placement = NormPlacement::kPost,
     .windows = HfWindows::kLayerTypes,
     .rope_by_type = true,
     .full_every = 4,
     .rope_theta = 500000,
     .rope_local_theta = 500000},
    {.name = "Gemma2ForCausalLM",
     .model_type = "gemma2",
     .transformers = "5.0.0",
     .attention_bias = true,
     .norm_placement = NormPlacement::kBoth,
     .norm_zero_centered = true,
     .hidden_act = HiddenAct::kGeluTanh,
     .scale_embeddings = true,
     .windows = HfWindows::kLayerTypes,
     .head_dim = 256,
     .kv_heads = 4,
     .full_every = 2,
     .query_pre_attn_scalar = 256,
     .attn_cap = 50,
     .final_cap = 30,
     .tie_word_embeddings = true},
    {.name = "Gemma3ForCausalLM",
     .model_type = "gemma3_text",
     .transformers = "5.0.0",
     .attention_bias = true,
     .qk_norm = QkNormKind::kHead,
     .norm_placement = NormPlacement::kBoth,
     .norm_zero_centered = true,
     .hidden_act = HiddenAct::kGeluTanh,
     .scale_embeddings = true,
     .windows = HfWindows::kLayerTypes,
     .rope_by_type = true,
     .head_dim = 256,
     .kv_heads = 4,
     .full_every = 6,
     .rope_theta = 1000000,
     .rope_local_theta = 10000,
     .query_pre_attn_scalar = 256,
     .final_cap = 0,
     .tie_word_embeddings = true},
};

bool has_windows(const HfArchitecture& architecture, int64_t sliding, int64_t layers) {
  if (architecture.windows == HfWindows::kAllLayers) return sliding == layers;
  return sliding == 0 || architecture.windows != HfWindows::kNone;
}

// Rotary embeddings by type are scaled in full layers alone.
bool has_rope(const HfArchitecture& architecture, const ModelConfig& model, int64_t sliding) {
  const bool scaled = model.rope_scaling.rope_type != RopeType::kDefault;
  if (model.rope_local_base_freq > 0) return architecture.rope_by_type;
  return !architecture.rope_by_type || sliding == 0 || !scaled;
}

// transformers' key is an integer.
bool has_scale(const HfArchitecture& architecture, const ModelConfig& model) {
  const double scalar = model.query_pre_attn_scalar;
  return scalar == 0 || (architecture.query_pre_attn_scalar > 0 && scalar == std::floor(scalar));
}

// attention_bias is of all projections.
bool has_biases(const HfArchitecture& architecture, const ModelConfig& model) {
  const bool attention = architecture.qkv_bias
                             ? model.qkv_bias && !model.o_bias
                             : model.qkv_bias == model.o_bias && (!model.qkv_bias || architecture.attention_bias);
  return attention && (!model.mlp_bias || architecture.mlp_bias);
}

bool has_caps(const HfArchitecture& architecture, const ModelConfig& model) {
  return (model.attn_logit_softcapping == 0 || architecture.attn_cap) &&
         (model.final_logit_softcapping == 0 || architecture.final_cap);
}

}  // namespace

std::span<const HfArchitecture> hf_architectures() { return kArchitectures; }

const HfArchitecture& hf_architecture(const ModelConfig& model) {
  int64_t sliding = 0, unrotated = 0;
  for (int64_t l = 0; l < model.num_hidden_layers; ++l) {
    sliding += model.slides(l) ? 1 : 0;
    unrotated += model.rotates(l) ? 0 : 1;
  }
  const auto* found = std::find_if(std::begin(kArchitectures), std::end(kArchitectures), [&](const auto& a) {
    return has_biases(a, model) && has_caps(a, model) && a.qk_norm == model.qk_norm &&
           a.norm_placement == model.norm_placement && a.norm_zero_centered == model.norm_zero_centered &&
           a.hidden_act == model.hidden_act && a.scale_embeddings == model.scale_embeddings && has_scale(a, model) &&
           has_windows(a, sliding, model.num_hidden_layers) && (a.no_rope_layers || unrotated == 0) &&
           has_rope(a, model, sliding);
  });
  if (found != std::end(kArchitectures)) return *found;
  std::vector<std::string> switches;
  if (model.qkv_bias) switches.emplace_back("model.qkv_bias");
  if (model.o_bias) switches.emplace_back("model.o_bias");
  if (model.mlp_bias) switches.emplace_back("model.mlp_bias");
  if (model.has_qk_norm()) switches.push_back(str("model.qk_norm: ", enum_name(model.qk_norm)));
  if (model.has_post_norms()) switches.push_back(str("model.norm_placement: ", enum_name(model.norm_placement)));
  if (model.norm_zero_centered) switches.emplace_back("model.norm_zero_centered");
  if (model.hidden_act != HiddenAct::kSilu) switches.push_back(str("model.hidden_act: ", enum_name(model.hidden_act)));
  if (model.scale_embeddings) switches.emplace_back("model.scale_embeddings");
  if (model.query_pre_attn_scalar > 0)
    switches.push_back(str("model.query_pre_attn_scalar: ", model.query_pre_attn_scalar));
  if (model.attn_logit_softcapping > 0)
    switches.push_back(str("model.attn_logit_softcapping: ", model.attn_logit_softcapping));
  if (model.final_logit_softcapping > 0)
    switches.push_back(str("model.final_logit_softcapping: ", model.final_logit_softcapping));
  if (sliding > 0) switches.emplace_back("model.sliding_window");
  if (model.rope_local_base_freq > 0) switches.emplace_back("model.rope_local_base_freq");
  if (model.rope_scaling.rope_type != RopeType::kDefault) switches.emplace_back("model.rope_scaling");
  if (unrotated > 0) switches.emplace_back("model.no_rope_layers");
  fail(Kind::kConfig, str("no architecture of transformers has ", join(switches, " and ")));
}

}  // namespace tokamak
