#include "interop/hf_architecture.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr HfArchitecture kArchitectures[] = {
    {.name = "LlamaForCausalLM", .model_type = "llama", .transformers = "4.46.0"},
    {.name = "Qwen2ForCausalLM",
     .model_type = "qwen2",
     .transformers = "4.46.0",
     .qkv_bias = true,
     .windows = HfWindows::kLastLayers},
    {.name = "Qwen3ForCausalLM",
     .model_type = "qwen3",
     .transformers = "4.46.0",
     .qk_norm = true,
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
     .no_rope_layers = true,
     .kv_heads = 4,
     .rope_theta = 2000000,
     .tie_word_embeddings = true},
};

bool has_windows(const HfArchitecture& architecture, int64_t sliding, int64_t layers) {
  if (architecture.windows == HfWindows::kAllLayers) return sliding == layers;
  return sliding == 0 || architecture.windows != HfWindows::kNone;
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
    return a.qkv_bias == model.qkv_bias && a.qk_norm == model.qk_norm &&
           has_windows(a, sliding, model.num_hidden_layers) && (a.no_rope_layers || unrotated == 0);
  });
  if (found != std::end(kArchitectures)) return *found;
  std::vector<std::string> switches;
  if (model.qkv_bias) switches.emplace_back("model.qkv_bias");
  if (model.qk_norm) switches.emplace_back("model.qk_norm");
  if (sliding > 0) switches.emplace_back("model.sliding_window");
  if (unrotated > 0) switches.emplace_back("model.no_rope_layers");
  fail(Kind::kConfig, str("no architecture of transformers has ", join(switches, " and ")));
}

}  // namespace tokamak
