#include "interop/hf_config.h"

#include <algorithm>
#include <array>

#include "formats/json.h"

namespace tokamak {

namespace {

using Json = nlohmann::json;

// What the architectures differ in; the values are transformers' defaults of their configuration_*.py.
struct Architecture {
  const char* name;
  const char* model_type;
  bool qkv_bias;
  bool qk_norm;
  int64_t default_head_dim;  // 0: hidden_size / num_attention_heads
};

constexpr std::array<Architecture, 4> kArchitectures = {{
    {"LlamaForCausalLM", "llama", false, false, 0},
    {"MistralForCausalLM", "mistral", false, false, 0},
    {"Qwen2ForCausalLM", "qwen2", true, false, 0},
    {"Qwen3ForCausalLM", "qwen3", false, true, 128},
}};

// Keys that say nothing of what the model computes.
constexpr std::array<std::string_view, 21> kWithoutEffect = {
    "architectures",        "model_type",   "_name_or_path",  "name_or_path",      "transformers_version",
    "torch_dtype",          "dtype",        "use_cache",      "attention_dropout", "bos_token_id",
    "eos_token_id",         "pad_token_id", "pretraining_tp", "max_window_layers", "output_attentions",
    "output_hidden_states", "return_dict",  "id2label",       "label2id",          "chunk_size_feed_forward",
    "problem_type"};

// Keys of models that compute something else: experts, quantised weights, code of their own.
constexpr std::array<std::string_view, 9> kOfOtherModels = {
    "num_experts",         "num_local_experts",  "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size",
    "quantization_config", "compression_config", "auto_map",         "text_config"};

class ConfigReader {
 public:
  ConfigReader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  // The value of a key, or nullptr where it is absent or null.
  const Json* find(const std::string& key) {
    seen_.push_back(key);
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }

  [[noreturn]] void refuse(const std::string& key, const std::string& what, const std::string& hint = "") const {
    const auto found = json_.find(key);
    const std::string value = found == json_.end() ? "absent" : found->dump();
    fail(Kind::kCheckpoint, str(path_, ": '", key, "' is ", value, "; ", what), hint);
  }

  int64_t whole(const std::string& key, std::optional<int64_t> otherwise = std::nullopt) {
    const Json* value = find(key);
    if (value == nullptr && otherwise) return *otherwise;
    if (value == nullptr) refuse(key, "a whole number is needed");
    const bool fits = value->is_number_integer() &&
                      (!value->is_number_unsigned() || value->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
    if (!fits || value->get<int64_t>() < 0) refuse(key, "expected a whole number from 0");
    return value->get<int64_t>();
  }

  double number(const std::string& key, std::optional<double> otherwise = std::nullopt) {
    const Json* value = find(key);
    if (value == nullptr && otherwise) return *otherwise;
    if (value == nullptr) refuse(key, "a number is needed");
    if (!value->is_number()) refuse(key, "expected a number");
    return value->get<double>();
  }

  bool truth(const std::string& key, bool otherwise) {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) refuse(key, "expected true or false");
    return value->get<bool>();
  }

  // One id; of a list (Llama 3 has several ends of text) the first.
  std::optional<int64_t> id(const std::string& key) {
    const Json* value = find(key);
    if (value != nullptr && value->is_array() && !value->empty()) value = &value->front();
    if (value == nullptr || (value->is_array() && value->empty())) return std::nullopt;
    if (!value->is_number_integer() || value->get<int64_t>() < 0) return std::nullopt;  // -1: none, in old files
    return value->get<int64_t>();
  }

  // Keys that nobody has asked for.
  std::vector<std::string> unused() const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : json_.items()) {
      const bool known = std::find(seen_.begin(), seen_.end(), key) != seen_.end() ||
                         std::find(kWithoutEffect.begin(), kWithoutEffect.end(), key) != kWithoutEffect.end();
      if (!known && !value.is_null()) keys.push_back(key);
    }
    return keys;
  }

 private:
  const Json& json_;
  std::string path_;
  std::vector<std::string> seen_;
};

const Architecture& read_architecture(ConfigReader& config) {
  std::vector<std::string> names;
  for (const Architecture& a : kArchitectures) names.emplace_back(a.name);
  const std::string supported = "supported are " + join(names, ", ");
  const Json* list = config.find("architectures");
  if (list == nullptr || !list->is_array() || list->size() != 1 || !list->front().is_string()) {
    config.refuse("architectures", "expected a list of one name; " + supported);
  }
  for (const Architecture& architecture : kArchitectures) {
    if (list->front() != architecture.name) continue;
    const Json* type = config.find("model_type");
    if (type != nullptr && *type != architecture.model_type) {
      config.refuse("model_type", str("that of ", architecture.name, " is '", architecture.model_type, "'"));
    }
    return architecture;
  }
  config.refuse("architectures", supported);
}

void refuse_other_models(ConfigReader& config) {
  for (const std::string_view name : kOfOtherModels) {
    const std::string key(name);
    const Json* value = config.find(key);
    if (value == nullptr) continue;
    if (key == "quantization_config" || key == "compression_config") {
      config.refuse(key, "quantised weights are not supported", "take the model's original weights");
    }
    if (key == "auto_map") config.refuse(key, "models with code of their own are not supported");
    if (*value != 0) config.refuse(key, "mixtures of experts and models inside of models are not supported");
  }
  const Json* activation = config.find("hidden_act");
  if (activation != nullptr && *activation != "silu") config.refuse("hidden_act", "only \"silu\" is supported");
  if (config.truth("attention_bias", false)) {
    config.refuse("attention_bias", "biases of the attention's output projection are not supported");
  }
  if (config.truth("mlp_bias", false)) config.refuse("mlp_bias", "biases of the feed-forward are not supported");
  if (config.find("pretraining_tp") != nullptr && config.whole("pretraining_tp") > 1) {
    config.refuse("pretraining_tp", "only 1 is supported: other values change the order of sums");
  }
}

// Attention that sees a window only. One that no sequence is longer than changes nothing.
void check_windows(ConfigReader& config, const Architecture& architecture, int64_t max_positions) {
  const std::string hint = "attention sees everything before it in Tokamak";
  const Json* window = config.find("sliding_window");
  const bool qwen = std::string_view(architecture.model_type).starts_with("qwen");
  const bool in_use = qwen ? config.truth("use_sliding_window", false) : window != nullptr;
  if (in_use && (window == nullptr || config.whole("sliding_window") < max_positions)) {
    config.refuse("sliding_window",
                  str("a window below max_position_embeddings (", max_positions, ") is not supported"), hint);
  }
  const Json* layers = config.find("layer_types");
  if (layers == nullptr) return;
  if (!layers->is_array()) config.refuse("layer_types", "expected a list");
  for (const Json& type : *layers) {
    const bool harmless = type == "full_attention" || (type == "sliding_attention" && in_use);
    if (!harmless) config.refuse("layer_types", str(type.dump(), " is not supported"), hint);
  }
}

RopeType read_rope_type(ConfigReader& rope) {
  const std::string key = rope.find("rope_type") != nullptr ? "rope_type" : "type";  // "type" in old files
  const Json* type = rope.find(key);
  if (type == nullptr) rope.refuse("rope_type", "it is needed");
  const std::vector<std::string>& names = enum_names(RopeType());
  for (size_t i = 0; i < names.size(); ++i) {
    if (*type == names[i]) return static_cast<RopeType>(i);
  }
  rope.refuse(key, "supported are " + join(names, ", "));
}

// Files of transformers 5 have keys that a type does not use; those say nothing.
void read_scaling(ConfigReader& rope, int64_t max_positions, RopeScaling& scaling) {
  const bool yarn = scaling.rope_type == RopeType::kYarn, llama3 = scaling.rope_type == RopeType::kLlama3;
  const std::optional<double> absent = 0.0;
  if (yarn) {
    scaling.factor = rope.number("factor", absent);
    scaling.beta_fast = rope.number("beta_fast", absent);
    scaling.beta_slow = rope.number("beta_slow", absent);
    scaling.attention_factor = rope.number("attention_factor", absent);
    scaling.mscale = rope.number("mscale", absent);
    scaling.mscale_all_dim = rope.number("mscale_all_dim", absent);
    scaling.truncate = rope.truth("truncate", true);
  } else {
    scaling.factor = rope.number("factor");
  }
  if (llama3) {
    scaling.low_freq_factor = rope.number("low_freq_factor");
    scaling.high_freq_factor = rope.number("high_freq_factor");
  }
  const int64_t original = rope.whole("original_max_position_embeddings", 0);
  if (yarn || llama3) {
    scaling.original_max_position_embeddings = original;
  } else if (original != 0 && original != max_positions) {
    rope.refuse("original_max_position_embeddings",
                str("of a rope_type that counts from max_position_embeddings (", max_positions, ")"));
  }
}

void read_rope(ConfigReader& config, ModelConfig& model) {
  model.rope_theta = config.number("rope_theta", 10000.0);
  if (config.number("partial_rotary_factor", 1.0) != 1.0) {
    config.refuse("partial_rotary_factor", "rotary embeddings turn whole heads in Tokamak");
  }
  // Of old files and of transformers 5.
  const Json* legacy = config.find("rope_scaling");
  const Json* current = config.find("rope_parameters");
  const std::string key = legacy != nullptr ? "rope_scaling" : "rope_parameters";
  const Json* object = legacy != nullptr ? legacy : current;
  const int64_t original = config.whole("original_max_position_embeddings", 0);  // beside it, for llama.cpp
  if (object == nullptr) return;
  if (!object->is_object()) config.refuse(key, "expected an object");
  ConfigReader rope(*object, str(config.path(), ", ", key));
  model.rope_theta = rope.number("rope_theta", model.rope_theta);
  if (rope.number("partial_rotary_factor", 1.0) != 1.0) {
    rope.refuse("partial_rotary_factor", "rotary embeddings turn whole heads in Tokamak");
  }
  RopeScaling& scaling = model.rope_scaling;
  scaling.rope_type = read_rope_type(rope);
  if (scaling.rope_type == RopeType::kDefault) return;
  read_scaling(rope, model.max_position_embeddings, scaling);
  if (original == 0 || scaling.original_max_position_embeddings == original) return;
  if (scaling.original_max_position_embeddings != 0) {
    config.refuse("original_max_position_embeddings",
                  str("that of ", key, " is ", scaling.original_max_position_embeddings));
  }
  if (scaling.rope_type == RopeType::kYarn || scaling.rope_type == RopeType::kLlama3) {
    scaling.original_max_position_embeddings = original;
  }
}

// The legacy key, which every reader knows; its numbers are floats, as transformers 4 insists.
Json render_scaling(const ModelConfig& model) {
  const RopeScaling& scaling = model.rope_scaling;
  if (scaling.rope_type == RopeType::kDefault) return nullptr;
  const bool yarn = scaling.rope_type == RopeType::kYarn, llama3 = scaling.rope_type == RopeType::kLlama3;
  Json json = {{"rope_type", enum_names(scaling.rope_type).at(static_cast<size_t>(scaling.rope_type))},
               {"factor", yarn ? scaling.extension(model.max_position_embeddings) : scaling.factor}};
  const auto add = [&](const char* key, double value) {
    if (value != 0) json[key] = value;
  };
  if (yarn || llama3) json["original_max_position_embeddings"] = scaling.original_max_position_embeddings;
  add("low_freq_factor", scaling.low_freq_factor);
  add("high_freq_factor", scaling.high_freq_factor);
  add("beta_fast", scaling.beta_fast);
  add("beta_slow", scaling.beta_slow);
  add("attention_factor", scaling.attention_factor);
  add("mscale", scaling.mscale);
  add("mscale_all_dim", scaling.mscale_all_dim);
  if (!scaling.truncate) json["truncate"] = false;
  return json;
}

Json id_or_null(const std::optional<int64_t>& id) { return id ? Json(*id) : Json(nullptr); }

const char* torch_dtype(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return "float32";
    case WeightType::kF16:
      return "float16";
    case WeightType::kBF16:
      return "bfloat16";
  }
  return "";
}

// The oldest transformers whose keys these are.
constexpr const char* kTransformersVersion = "4.46.0";

}  // namespace

HfConfig parse_hf_config(std::string_view text, const std::string& path) {
  const Json json = parse_json_object(text, path, Kind::kCheckpoint);
  ConfigReader config(json, path);
  const Architecture& architecture = read_architecture(config);
  refuse_other_models(config);

  HfConfig hf;
  hf.architecture = architecture.name;
  ModelConfig& model = hf.model;
  model.hidden_size = config.whole("hidden_size");
  model.intermediate_size = config.whole("intermediate_size");
  model.num_hidden_layers = config.whole("num_hidden_layers");
  model.num_attention_heads = config.whole("num_attention_heads");
  // Llama 1 and Qwen have files without it; Mistral's default is another, so that one must say.
  const bool grouped = std::string_view(architecture.model_type) == "mistral";
  model.num_key_value_heads =
      config.whole("num_key_value_heads", grouped ? std::nullopt : std::optional(model.num_attention_heads));
  model.head_dim = config.whole("head_dim", architecture.default_head_dim);
  model.vocab_size = config.whole("vocab_size");
  model.max_position_embeddings = config.whole("max_position_embeddings");
  model.rms_norm_eps = config.number("rms_norm_eps");
  model.qkv_bias = architecture.qkv_bias;
  model.qk_norm = architecture.qk_norm;
  model.tie_word_embeddings = config.truth("tie_word_embeddings", false);
  model.initializer_range = config.number("initializer_range", 0.02);
  read_rope(config, model);
  check_windows(config, architecture, model.max_position_embeddings);
  hf.ids = {config.id("bos_token_id"), config.id("eos_token_id"), config.id("pad_token_id")};
  hf.unused = config.unused();

  if (model.vocab_size == 0) config.refuse("vocab_size", "expected a positive number");
  for (const FieldError& error : model.problems()) fail(Kind::kCheckpoint, str(path, ": ", error.what), error.hint);
  return hf;
}

// Mistral's with full attention is Llama's.
std::string hf_architecture(const ModelConfig& model) {
  for (const Architecture& a : kArchitectures) {
    if (a.qkv_bias == model.qkv_bias && a.qk_norm == model.qk_norm) return a.name;
  }
  fail(Kind::kConfig, "no architecture of transformers has both model.qkv_bias and model.qk_norm");
}

std::string render_hf_config(const ModelConfig& model, WeightType type, const SpecialIds& ids) {
  const std::string architecture = hf_architecture(model);
  const auto* found = std::find_if(kArchitectures.begin(), kArchitectures.end(),
                                   [&](const Architecture& a) { return architecture == a.name; });
  nlohmann::ordered_json json;
  json["architectures"] = {architecture};
  json["model_type"] = found->model_type;
  json["torch_dtype"] = torch_dtype(type);
  json["vocab_size"] = model.vocab_size;
  json["hidden_size"] = model.hidden_size;
  json["intermediate_size"] = model.intermediate_size;
  json["num_hidden_layers"] = model.num_hidden_layers;
  json["num_attention_heads"] = model.num_attention_heads;
  json["num_key_value_heads"] = model.kv_heads();
  json["head_dim"] = model.head_size();
  json["hidden_act"] = "silu";
  json["max_position_embeddings"] = model.max_position_embeddings;
  json["rms_norm_eps"] = model.rms_norm_eps;
  json["rope_theta"] = model.rope_theta;
  json["rope_scaling"] = render_scaling(model);
  // llama.cpp's converter looks for it here, and takes 8192 where it is not.
  const int64_t original = model.rope_scaling.original_max_position_embeddings;
  if (original != 0) json["original_max_position_embeddings"] = original;
  json["attention_bias"] = false;
  json["mlp_bias"] = false;
  if (model.qkv_bias || model.qk_norm) json["use_sliding_window"] = false;
  json["attention_dropout"] = 0.0;
  json["initializer_range"] = model.initializer_range;
  json["tie_word_embeddings"] = model.tie_word_embeddings;
  json["use_cache"] = true;
  json["bos_token_id"] = id_or_null(ids.bos);
  json["eos_token_id"] = id_or_null(ids.eos);
  json["pad_token_id"] = id_or_null(ids.pad);
  json["pretraining_tp"] = 1;
  json["transformers_version"] = kTransformersVersion;
  return json.dump(2) + "\n";
}

std::string render_generation_config(const SpecialIds& ids) {
  nlohmann::ordered_json json;
  json["_from_model_config"] = true;
  if (ids.bos) json["bos_token_id"] = *ids.bos;
  if (ids.eos) json["eos_token_id"] = *ids.eos;
  if (ids.pad) json["pad_token_id"] = *ids.pad;
  json["transformers_version"] = kTransformersVersion;
  return json.dump(2) + "\n";
}

}  // namespace tokamak
