// config.json of Hugging Face <-> ModelConfig. What a Tokamak model computes is what transformers' LlamaForCausalLM,
// MistralForCausalLM, Qwen2ForCausalLM or Qwen3ForCausalLM computes from the same file; whatever would change that and
// is not supported is refused by its key and value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json.h"
#include "interop/weight_stream.h"
#include "model/model_config.h"

namespace tokamak {

// Ids with a meaning of their own, which are the tokenizer's and not the model's.
struct SpecialIds {
  std::optional<int64_t> bos, eos, pad;
};

struct HfConfig {
  std::string architecture;  // "LlamaForCausalLM"
  ModelConfig model;
  SpecialIds ids;
  std::vector<std::string> unused;  // keys that the architecture does not know, and so does not use
};

// Of a config.json: of a list (Llama 3 has several EOS tokens) the first; what is no id (-1 in old files) is none.
SpecialIds read_special_ids(const JsonDocument& config);

// Error(kCheckpoint) naming `path`, key and value.
HfConfig parse_hf_config(std::string_view text, const std::string& path);

// The class of transformers that computes this model; Error(kConfig) where there is none.
std::string hf_architecture(const ModelConfig& model);

// With the keys that transformers 4 and 5, vLLM and llama.cpp's converter read.
std::string render_hf_config(const ModelConfig& model, WeightType type, const SpecialIds& ids);
std::string render_generation_config(const SpecialIds& ids);

}  // namespace tokamak
