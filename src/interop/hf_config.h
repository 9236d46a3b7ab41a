// config.json of Hugging Face <-> ModelConfig. A Tokamak model computes the same as the file's class of transformers,
// one of hf_architecture.h. A key that would change the computation and is not supported is refused, with its value.
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

// Special token ids, which belong to the tokenizer and not to the model.
struct SpecialIds {
  std::optional<int64_t> bos, eos, pad;
};

struct HfConfig {
  std::string architecture;  // "LlamaForCausalLM"
  ModelConfig model;
  SpecialIds ids;
  std::vector<std::string> unused;  // keys that the architecture does not use
};

// Reads ids from a config.json. Takes the first of a list (Llama 3 has several EOS tokens). -1 in old files means none.
SpecialIds read_special_ids(const JsonDocument& config);

// Error(kCheckpoint) naming `path`, key and value.
HfConfig parse_hf_config(std::string_view text, const std::string& path);

// Includes the keys that transformers 4 and 5, vLLM and llama.cpp's converter read. Error(kConfig) if no class of
// transformers computes this model.
std::string render_hf_config(const ModelConfig& model, WeightType type, const SpecialIds& ids);
std::string render_generation_config(const ModelConfig& model, const SpecialIds& ids);

}  // namespace tokamak
