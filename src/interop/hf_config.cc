#include "interop/hf_config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "interop/hf_layers.h"

namespace tokamak {

namespace {

using Json = nlohmann::json;

// Keys that do not affect the computation.
constexpr std::array<std::string_view, 21> kWithoutEffect = {
    "architectures",        "model_type",   "_name_or_path",  "name_or_path",      "transformers_version",
    "torch_dtype",          "dtype",        "use_cache",      "attention_dropout", "bos_token_id",
    "eos_token_id",         "pad_token_id", "pretraining_tp", "max_window_layers", "output_attentions",
    "output_hidden_states", "return_dict",  "id2label",       "label2id",          "chunk_size_feed_forward",
    "problem_type"};

// Keys of unsupported models: experts, quantised weights, custom code.
constexpr std::array<std::string_view, 9> kOfOtherModels = {
    "num_experts",         "num_local_experts",  "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size",
    "quantization_config", "compression_config", "auto_map",         "text_config"};

const HfArchitecture& read_architecture(ConfigReader& config) {
  std::vector<std::string> names;
  for (const HfArchitecture& a : hf_architectures()) names.emplace_back(a.name);
  const std::string supported = "supported are " + join(names, ", ");
  const JsonValue list = config["architectures"];
  if (!list.is_list() || list.items().size() != 1) list.refuse("expected a list of one name; " + supported);
  const auto found = std::find(names.begin(), names.end(), list.items().front().text());
  if (found == names.end()) list.refuse(supported);
  const HfArchitecture& architecture = hf_architectures()[static_cast<size_t>(found - names.begin())];
  const JsonValue type = config["model_type"];
  if (type.text_or(architecture.model_type) != architecture.model_type)
    type.refuse(str("that of ", architecture.name, " is '", architecture.model_type, "'"));
  return architecture;
}

void refuse_other_models(ConfigReader& config) {
  for (const std::string_view key : kOfOtherModels) {
    const JsonValue value = config[std::string(key)];
    if (!value.present()) continue;
    if (key == "quantization_config" || key == "compression_config") {
      value.refuse("quantised weights are not supported", "take the model's original weights");
    }
    if (key == "auto_map") value.refuse("models with code of their own are not supported");
    if (!value.is_whole() || value.whole() != 0) {
      value.refuse("mixtures of experts and models inside of models are not supported");
    }
  }
  const JsonValue pretraining_tp = config["pretraining_tp"];
  if (pretraining_tp.whole_or(1) > 1)
    pretraining_tp.refuse("only 1 is supported: other values change the order of sums");
}

void read_biases(ConfigReader& config, const HfArchitecture& architecture, ModelConfig& model) {
  const auto read = [&](const char* key, bool has_key) {
    const JsonValue bias = config[key];
    const bool given = bias.truth_or(false);
    if (given && !has_key) bias.refuse(str(architecture.name, " has no such biases"));
    return given;
  };
  const bool attention = read("attention_bias", architecture.attention_bias);
  model.qkv_bias = architecture.qkv_bias || attention;
  model.o_bias = attention;
  model.mlp_bias = read("mlp_bias", architecture.mlp_bias);
}

// null is no cap; an absent key means the class's default.
double read_cap(const JsonValue& cap, const std::optional<double>& absent) {
  if (!absent) {
    if (cap.present()) cap.refuse("its class has no such cap");
    return 0;
  }
  if (cap.is_missing()) return *absent;
  if (!cap.present()) return 0;
  if (!(cap.number() > 0)) cap.refuse("it must be above 0, or null");
  return cap.number();
}

// The keys that only Gemma's classes have.
void read_gemma(ConfigReader& config, const HfArchitecture& architecture, ModelConfig& model) {
  const std::string& act = enum_name(architecture.hidden_act);
  const JsonValue old = config["hidden_act"], current = config["hidden_activation"];
  const JsonValue& activation = architecture.hidden_act != HiddenAct::kSilu && current.present() ? current : old;
  const bool ignored =
      architecture.hidden_act != HiddenAct::kSilu && !current.present();  // transformers' default is act
  if (!ignored && activation.text_or(act) != act)
    activation.refuse(str("that of ", architecture.name, " is \"", act, "\""));
  if (architecture.query_pre_attn_scalar == 0) return;
  const double scalar = config["query_pre_attn_scalar"].number_or(architecture.query_pre_attn_scalar);
  if (scalar != double(model.head_size())) model.query_pre_attn_scalar = scalar;
  model.attn_logit_softcapping = read_cap(config["attn_logit_softcapping"], architecture.attn_cap);
  model.final_logit_softcapping = read_cap(config["final_logit_softcapping"], architecture.final_cap);
  const JsonValue both_ways = config["use_bidirectional_attention"];
  if (both_ways.truth_or(false)) both_ways.refuse("attention to later tokens is not supported");
}

RopeType read_rope_type(const JsonValue& rope) {
  const bool old = rope["type"].present() && !rope["rope_type"].present();
  const JsonValue type = rope[old ? "type" : "rope_type"];
  const std::string name = type.text();
  const std::vector<std::string>& names = enum_names(RopeType());
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) type.refuse("supported are " + join(names, ", "));
  return static_cast<RopeType>(found - names.begin());
}

// The numbers of each rope_type. A missing number of yarn becomes 0, which means its default; llama3 requires all.
struct ScalingKey {
  const char* name;
  double RopeScaling::*value;
  RopeType type;
};
constexpr ScalingKey kScalingKeys[] = {{"low_freq_factor", &RopeScaling::low_freq_factor, RopeType::kLlama3},
                                       {"high_freq_factor", &RopeScaling::high_freq_factor, RopeType::kLlama3},
                                       {"beta_fast", &RopeScaling::beta_fast, RopeType::kYarn},
                                       {"beta_slow", &RopeScaling::beta_slow, RopeType::kYarn},
                                       {"attention_factor", &RopeScaling::attention_factor, RopeType::kYarn},
                                       {"mscale", &RopeScaling::mscale, RopeType::kYarn},
                                       {"mscale_all_dim", &RopeScaling::mscale_all_dim, RopeType::kYarn}};

// Ignores keys that the rope_type does not use, which files of transformers 5 contain.
void read_scaling(const JsonValue& rope, int64_t max_positions, RopeScaling& scaling) {
  const bool yarn = scaling.rope_type == RopeType::kYarn, llama3 = scaling.rope_type == RopeType::kLlama3;
  scaling.factor = yarn ? rope["factor"].number_or(0) : rope["factor"].number();
  for (const auto& [name, value, type] : kScalingKeys) {
    if (scaling.rope_type == type) scaling.*value = yarn ? rope[name].number_or(0) : rope[name].number();
  }
  if (yarn) scaling.truncate = rope["truncate"].truth_or(true);
  const JsonValue original = rope["original_max_position_embeddings"];
  if (yarn || llama3) {
    scaling.original_max_position_embeddings = original.whole_or(0);
  } else if (original.whole_or(0) != 0 && original.whole() != max_positions) {
    original.refuse(str("of a rope_type that counts from max_position_embeddings (", max_positions, ")"));
  }
}

void check_whole_heads(const JsonValue& factor) {
  if (factor.number_or(1.0) != 1.0) factor.refuse("rotary embeddings turn whole heads in Tokamak");
}

// rope_theta and rope_scaling of an object with both.
void read_rope(const JsonValue& rope, ModelConfig& model) {
  model.rope_theta = rope["rope_theta"].number_or(model.rope_theta);
  check_whole_heads(rope["partial_rotary_factor"]);
  model.rope_scaling.rope_type = read_rope_type(rope);
  if (model.rope_scaling.rope_type != RopeType::kDefault)
    read_scaling(rope, model.max_position_embeddings, model.rope_scaling);
}

// Files of transformers 5 have an object for each type of layer in rope_parameters. In older files rope_theta and
// rope_scaling are those of full layers; sliding layers have rope_local_base_freq.
void read_rope_by_type(ConfigReader& config, const HfArchitecture& architecture, ModelConfig& model) {
  const JsonValue types = config["rope_parameters"], legacy = config["rope_scaling"];
  double sliding = config["rope_local_base_freq"].number_or(architecture.rope_local_theta);
  if (types.present()) {
    const JsonValue full = types["full_attention"], local = types["sliding_attention"];
    if (types["rope_type"].present() || types["rope_theta"].present())
      types.refuse(str(architecture.name, " reads it for each type of layer: full_attention and sliding_attention"));
    if (full.present()) read_rope(full, model);
    if (local.present()) {
      sliding = local["rope_theta"].number_or(sliding);
      if (read_rope_type(local) != RopeType::kDefault) local["rope_type"].refuse("sliding layers have no scaling");
    }
  } else if (legacy.present()) {
    read_rope(legacy, model);
  }
  const bool same = sliding == model.rope_theta && model.rope_scaling.rope_type == RopeType::kDefault;
  if (model.sliding_window > 0 && !same) model.rope_local_base_freq = sliding;
}

void read_rope(ConfigReader& config, const HfArchitecture& architecture, ModelConfig& model) {
  model.rope_theta = config["rope_theta"].number_or(architecture.rope_theta);
  check_whole_heads(config["partial_rotary_factor"]);
  const JsonValue beside = config["original_max_position_embeddings"];  // written for llama.cpp
  const int64_t original = beside.whole_or(0);
  if (architecture.rope_by_type) return read_rope_by_type(config, architecture, model);
  // Old files have rope_scaling, those of transformers 5 rope_parameters.
  const JsonValue legacy = config["rope_scaling"], current = config["rope_parameters"];
  const JsonValue& rope = legacy.present() ? legacy : current;
  if (!rope.present()) return;
  read_rope(rope, model);
  RopeScaling& scaling = model.rope_scaling;
  if (scaling.rope_type == RopeType::kDefault || original == 0 || scaling.original_max_position_embeddings == original)
    return;
  if (scaling.original_max_position_embeddings != 0) {
    beside.refuse(str("that of ", legacy.present() ? "rope_scaling" : "rope_parameters", " is ",
                      scaling.original_max_position_embeddings));
  }
  if (scaling.rope_type == RopeType::kYarn || scaling.rope_type == RopeType::kLlama3) {
    scaling.original_max_position_embeddings = original;
  }
}

// The legacy key, which every reader supports; its numbers are floats, as transformers 4 requires.
Json render_scaling(const ModelConfig& model) {
  const RopeScaling& scaling = model.rope_scaling;
  if (scaling.rope_type == RopeType::kDefault) return nullptr;
  const bool yarn = scaling.rope_type == RopeType::kYarn, llama3 = scaling.rope_type == RopeType::kLlama3;
  Json json = {{"rope_type", enum_names(scaling.rope_type).at(static_cast<size_t>(scaling.rope_type))},
               {"factor", yarn ? scaling.extension(model.max_position_embeddings) : scaling.factor}};
  if (yarn || llama3) json["original_max_position_embeddings"] = scaling.original_max_position_embeddings;
  for (const auto& [name, value, type] : kScalingKeys) {
    if (scaling.*value != 0) json[name] = scaling.*value;
  }
  if (!scaling.truncate) json["truncate"] = false;
  return json;
}

Json render_rope_by_type(const ModelConfig& model) {
  const bool local = model.rope_local_base_freq > 0;
  Json full = render_scaling(model);
  if (full.is_null()) full = {{"rope_type", "default"}};
  full["rope_theta"] = model.rope_theta;
  return {{"full_attention", full},
          {"sliding_attention",
           {{"rope_type", "default"}, {"rope_theta", local ? model.rope_local_base_freq : model.rope_theta}}}};
}

Json id_or_null(const std::optional<int64_t>& id) { return id ? Json(*id) : Json(nullptr); }

}  // namespace

SpecialIds read_special_ids(const JsonDocument& config) {
  const auto id = [&](const char* key) -> std::optional<int64_t> {
    const JsonValue value = config[key];
    const bool several = value.is_list() && !value.items().empty();
    const JsonValue first = several ? value.items().front() : value;
    return first.is_whole() && first.whole(INT64_MIN) >= 0 ? std::optional(first.whole()) : std::nullopt;
  };
  return {id("bos_token_id"), id("eos_token_id"), id("pad_token_id")};
}

HfConfig parse_hf_config(std::string_view text, const std::string& path) {
  const JsonDocument json(text, {path, Kind::kCheckpoint});
  ConfigReader config(json);
  const HfArchitecture& architecture = read_architecture(config);
  refuse_other_models(config);

  HfConfig hf;
  hf.architecture = architecture.name;
  ModelConfig& model = hf.model;
  model.hidden_size = config["hidden_size"].whole();
  model.intermediate_size = config["intermediate_size"].whole();
  model.num_hidden_layers = config["num_hidden_layers"].whole();
  model.num_attention_heads = config["num_attention_heads"].whole();
  model.num_key_value_heads = config["num_key_value_heads"].whole_or(
      architecture.kv_heads > 0 ? architecture.kv_heads : model.num_attention_heads);
  model.head_dim = config["head_dim"].whole_or(architecture.head_dim);
  model.vocab_size = config["vocab_size"].whole(1);
  model.max_position_embeddings = config["max_position_embeddings"].whole();
  model.rms_norm_eps = config["rms_norm_eps"].number();
  read_biases(config, architecture, model);
  model.qk_norm = architecture.qk_norm;
  model.norm_placement = architecture.norm_placement;
  model.norm_zero_centered = architecture.norm_zero_centered;
  model.hidden_act = architecture.hidden_act;
  model.scale_embeddings = architecture.scale_embeddings;
  model.tie_word_embeddings = config["tie_word_embeddings"].truth_or(architecture.tie_word_embeddings);
  model.initializer_range = config["initializer_range"].number_or(0.02);
  const auto expect_valid = [&] {
    for (const FieldError& error : model.problems()) fail(Kind::kCheckpoint, str(path, ": ", error.what), error.hint);
  };
  expect_valid();  // the number of layers bounds the lists
  read_gemma(config, architecture, model);
  read_layers(config, architecture, model);
  read_rope(config, architecture, model);
  expect_valid();
  hf.ids = read_special_ids(json);
  hf.unused = config.unused(kWithoutEffect);
  return hf;
}

std::string render_hf_config(const ModelConfig& model, WeightType type, const SpecialIds& ids) {
  const HfArchitecture& architecture = hf_architecture(model);
  if (architecture.scale_embeddings && model.hidden_size % model.num_attention_heads != 0) {
    fail(Kind::kConfig, str("transformers' ", architecture.name, " wants model.num_attention_heads (",
                            model.num_attention_heads, ") to divide model.hidden_size (", model.hidden_size, ")"));
  }
  nlohmann::ordered_json json;
  json["architectures"] = {architecture.name};
  json["model_type"] = architecture.model_type;
  json["torch_dtype"] = format_of(type).torch_dtype;
  json["vocab_size"] = model.vocab_size;
  json["hidden_size"] = model.hidden_size;
  json["intermediate_size"] = model.intermediate_size;
  json["num_hidden_layers"] = model.num_hidden_layers;
  json["num_attention_heads"] = model.num_attention_heads;
  json["num_key_value_heads"] = model.kv_heads();
  json["head_dim"] = model.head_size();
  json[architecture.hidden_act == HiddenAct::kSilu ? "hidden_act" : "hidden_activation"] =
      enum_name(architecture.hidden_act);
  if (architecture.query_pre_attn_scalar > 0) {
    const double scalar = model.query_pre_attn_scalar;
    json["query_pre_attn_scalar"] = scalar > 0 ? static_cast<int64_t>(scalar) : model.head_size();
  }
  const auto add_cap = [&](const char* key, const std::optional<double>& has_key, double cap) {
    if (has_key) json[key] = cap > 0 ? Json(cap) : Json(nullptr);
  };
  add_cap("attn_logit_softcapping", architecture.attn_cap, model.attn_logit_softcapping);
  add_cap("final_logit_softcapping", architecture.final_cap, model.final_logit_softcapping);
  json["max_position_embeddings"] = model.max_position_embeddings;
  json["rms_norm_eps"] = model.rms_norm_eps;
  if (architecture.rope_by_type) {
    json["rope_parameters"] = render_rope_by_type(model);
  } else {
    json["rope_theta"] = model.rope_theta;
    json["rope_scaling"] = render_scaling(model);
  }
  // llama.cpp's converter reads this key outside rope_scaling, and assumes 8192 if it is missing.
  const int64_t original = model.rope_scaling.original_max_position_embeddings;
  if (original != 0) json["original_max_position_embeddings"] = original;
  json["attention_bias"] = architecture.attention_bias && model.qkv_bias;
  json["mlp_bias"] = model.mlp_bias;
  render_layers(model, architecture, json);
  json["attention_dropout"] = 0.0;
  json["initializer_range"] = model.initializer_range;
  json["tie_word_embeddings"] = model.tie_word_embeddings;
  json["use_cache"] = true;
  json["bos_token_id"] = id_or_null(ids.bos);
  json["eos_token_id"] = id_or_null(ids.eos);
  json["pad_token_id"] = id_or_null(ids.pad);
  json["pretraining_tp"] = 1;
  json["transformers_version"] = architecture.transformers;
  return json.dump(2) + "\n";
}

std::string render_generation_config(const ModelConfig& model, const SpecialIds& ids) {
  nlohmann::ordered_json json;
  json["_from_model_config"] = true;
  if (ids.bos) json["bos_token_id"] = *ids.bos;
  if (ids.eos) json["eos_token_id"] = *ids.eos;
  if (ids.pad) json["pad_token_id"] = *ids.pad;
  json["transformers_version"] = hf_architecture(model).transformers;
  return json.dump(2) + "\n";
}

}  // namespace tokamak
