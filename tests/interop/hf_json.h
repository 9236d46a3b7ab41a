// A small model and its config.json, and what the reader says of a changed one.
#pragma once

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "interop/hf_config.h"

namespace tokamak {

using Json = nlohmann::ordered_json;

inline ModelConfig small_model() {
  ModelConfig model;
  model.hidden_size = 64;
  model.intermediate_size = 128;
  model.num_hidden_layers = 2;
  model.num_attention_heads = 4;
  model.num_key_value_heads = 2;
  model.vocab_size = 100;
  return model;
}

inline Json small_json() {
  return Json::parse(render_hf_config(small_model(), WeightType::kBF16, {1, 2, std::nullopt}));
}

// small_json() with `key` set to `value`.
inline Json with(const std::string& key, const Json& value) {
  Json json = small_json();
  json[key] = value;
  return json;
}

inline std::string error_of(const Json& json) {
  try {
    parse_hf_config(json.dump(), "dir/config.json");
    return "";
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kCheckpoint);
    return error.what();
  }
}

inline void refuses(const Json& json, const std::string& words) {
  const std::string error = error_of(json);
  INFO("expected: " << words << "\nfound: " << error);
  CHECK(error.find("dir/config.json") != std::string::npos);
  CHECK(error.find(words) != std::string::npos);
}

inline ModelConfig gemma3_model() {
  ModelConfig model = small_model();
  model.norm_placement = NormPlacement::kBoth;
  model.norm_zero_centered = model.scale_embeddings = true;
  model.hidden_act = HiddenAct::kGeluTanh;
  model.qk_norm = QkNormKind::kHead;
  model.sliding_window = 5;
  model.layer_types = {LayerType::kSliding, LayerType::kFull};
  model.rope_local_base_freq = 20;
  return model;
}

inline ModelConfig gemma2_model() {
  ModelConfig model = gemma3_model();
  model.qk_norm = QkNormKind::kNone;
  model.rope_local_base_freq = 0;
  model.attn_logit_softcapping = 50;
  model.final_logit_softcapping = 30;
  return model;
}

}  // namespace tokamak
