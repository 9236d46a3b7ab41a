// A valid input of each target, rich in what can be damaged.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "fuzz/targets.h"

namespace tokamak::fuzz {

inline std::string safetensors_sample() {
  std::vector<SafetensorsEntry> tensors(3);
  tensors[0] = {"a", "F32", {2, 3}};
  tensors[1] = {"b", "BF16", {4}};
  tensors[2] = {"c", "F16", {0, 2}};
  const std::string header = render_safetensors_header(tensors, {{"format", "pt"}});
  return header + std::string(static_cast<size_t>(tensors.back().end), 'x');
}

inline std::string index_sample() {
  return R"({"metadata": {"total_size": 12}, "weight_map": {"a": "model-00001-of-00002.safetensors",
             "b": "model-00002-of-00002.safetensors"}})";
}

inline std::string hf_config_sample() {
  return R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
             "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
             "vocab_size": 100, "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "hidden_act": "silu",
             "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
             "high_freq_factor": 4.0, "original_max_position_embeddings": 1024}, "tie_word_embeddings": false,
             "attention_bias": false, "mlp_bias": false, "bos_token_id": 1, "eos_token_id": [2, 3]})";
}

inline std::string gguf_sample() {
  const GgufKeys keys = {{"general.architecture", std::string("llama")},
                         {"u8", uint8_t{1}},
                         {"flag", true},
                         {"f32", 0.5f},
                         {"u64", uint64_t{7}},
                         {"tokens", GgufArray(std::vector<std::string>{"<s>", "a"})},
                         {"scores", GgufArray(std::vector<float>{0, -1})},
                         {"flags", GgufArray(std::vector<bool>{true, false})}};
  std::vector<GgufTensor> tensors = {{"a", {2, 3}, GgufType::kF32}, {"b", {5}, GgufType::kBF16}};
  return render_gguf_header(keys, tensors) + std::string(64, '\0');
}

}  // namespace tokamak::fuzz
