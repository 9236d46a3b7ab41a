#include "interop/hf_config.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "interop/hf_architecture.h"

using namespace tokamak;
using Json = nlohmann::ordered_json;

namespace {

ModelConfig small_model() {
  ModelConfig model;
  model.hidden_size = 64;
  model.intermediate_size = 128;
  model.num_hidden_layers = 2;
  model.num_attention_heads = 4;
  model.num_key_value_heads = 2;
  model.vocab_size = 100;
  return model;
}

Json small_json() { return Json::parse(render_hf_config(small_model(), WeightType::kBF16, {1, 2, std::nullopt})); }

// small_json() with `key` set to `value`.
Json with(const std::string& key, const Json& value) {
  Json json = small_json();
  json[key] = value;
  return json;
}

std::string error_of(const Json& json) {
  try {
    parse_hf_config(json.dump(), "dir/config.json");
    return "";
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kCheckpoint);
    return error.what();
  }
}

void refuses(const Json& json, const std::string& words) {
  const std::string error = error_of(json);
  INFO("expected: " << words << "\nfound: " << error);
  CHECK(error.find("dir/config.json") != std::string::npos);
  CHECK(error.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("config.json has the keys that transformers 4 and 5 read, its numbers as floats") {
  ModelConfig model = small_model();
  model.rope_theta = 500000;
  model.rope_scaling = {.rope_type = RopeType::kLlama3,
                        .factor = 8,
                        .original_max_position_embeddings = 1024,
                        .low_freq_factor = 1,
                        .high_freq_factor = 4};
  CHECK(render_hf_config(model, WeightType::kBF16, {1, 2, std::nullopt}) == R"({
  "architectures": [
    "LlamaForCausalLM"
  ],
  "model_type": "llama",
  "torch_dtype": "bfloat16",
  "vocab_size": 100,
  "hidden_size": 64,
  "intermediate_size": 128,
  "num_hidden_layers": 2,
  "num_attention_heads": 4,
  "num_key_value_heads": 2,
  "head_dim": 16,
  "hidden_act": "silu",
  "max_position_embeddings": 2048,
  "rms_norm_eps": 1e-05,
  "rope_theta": 500000.0,
  "rope_scaling": {
    "factor": 8.0,
    "high_freq_factor": 4.0,
    "low_freq_factor": 1.0,
    "original_max_position_embeddings": 1024,
    "rope_type": "llama3"
  },
  "original_max_position_embeddings": 1024,
  "attention_bias": false,
  "mlp_bias": false,
  "attention_dropout": 0.0,
  "initializer_range": 0.02,
  "tie_word_embeddings": false,
  "use_cache": true,
  "bos_token_id": 1,
  "eos_token_id": 2,
  "pad_token_id": null,
  "pretraining_tp": 1,
  "transformers_version": "4.46.0"
}
)");
}

TEST_CASE("config.json of every rope_scaling and architecture comes back as the same model") {
  std::vector<ModelConfig> models(11, small_model());
  models[0].rope_scaling = {.rope_type = RopeType::kLinear, .factor = 2};
  models[1].rope_scaling = {.rope_type = RopeType::kDynamic, .factor = 2};
  models[2].rope_scaling = {.rope_type = RopeType::kYarn,
                            .factor = 2,
                            .original_max_position_embeddings = 512,
                            .beta_fast = 16,
                            .beta_slow = 2,
                            .attention_factor = 1.5,
                            .truncate = false};
  models[3].rope_scaling = {.rope_type = RopeType::kYarn,
                            .factor = 4,
                            .original_max_position_embeddings = 512,
                            .mscale = 0.5,
                            .mscale_all_dim = 0.75};
  models[4].qkv_bias = true;
  models[5].qk_norm = true;
  models[6].tie_word_embeddings = true;
  models[7].sliding_window = 5;
  models[8].sliding_window = 5;
  models[8].layer_types = {LayerType::kSliding, LayerType::kFull};
  models[9] = models[8];
  models[9].qk_norm = true;
  models[10].no_rope_layers = {1, 0};
  for (const ModelConfig& model : models) {
    const std::string text = render_hf_config(model, WeightType::kF32, {});
    const HfConfig read = parse_hf_config(text, "x");
    CHECK(render_hf_config(read.model, WeightType::kF32, {}) == text);
    CHECK(read.model.qkv_bias == model.qkv_bias);
    CHECK(read.model.qk_norm == model.qk_norm);
    CHECK(read.model.sliding_window == model.sliding_window);
    CHECK(read.model.layer_types == model.layer_types);
    CHECK(read.model.no_rope_layers == model.no_rope_layers);
    CHECK(read.model.rope_scaling.mscale_all_dim == model.rope_scaling.mscale_all_dim);
    CHECK(read.unused.empty());
  }
  CHECK(parse_hf_config(render_hf_config(models[4], WeightType::kF32, {}), "x").architecture == "Qwen2ForCausalLM");
  CHECK(parse_hf_config(render_hf_config(models[5], WeightType::kF32, {}), "x").architecture == "Qwen3ForCausalLM");
  models[4].qk_norm = true;
  CHECK_THROWS_AS(hf_architecture(models[4]), Error);
}

TEST_CASE("what an old file leaves out has the value that transformers gives it") {
  Json json = small_json();
  for (const char* key : {"head_dim", "rope_theta", "rope_scaling", "num_key_value_heads", "tie_word_embeddings",
                          "attention_bias", "mlp_bias", "initializer_range", "hidden_act", "model_type"}) {
    json.erase(key);
  }
  const HfConfig hf = parse_hf_config(json.dump(), "x");
  CHECK(hf.model.rope_theta == 10000.0);
  CHECK(hf.model.kv_heads() == 4);
  CHECK(hf.model.head_size() == 16);
  CHECK(hf.ids.bos == 1);
  json["architectures"] = {"Qwen3ForCausalLM"};
  CHECK(parse_hf_config(json.dump(), "x").model.head_size() == 128);
}

TEST_CASE("rope_parameters of transformers 5 is read like rope_scaling") {
  Json json = small_json();
  json.erase("rope_theta");
  json["rope_parameters"] = {{"rope_type", "linear"}, {"rope_theta", 123.0}, {"factor", 3.0}};
  const ModelConfig model = parse_hf_config(json.dump(), "x").model;
  CHECK(model.rope_theta == 123);
  CHECK(model.rope_scaling.rope_type == RopeType::kLinear);
  CHECK(model.rope_scaling.factor == 3);
  json["rope_parameters"]["rope_type"] = "longrope";
  refuses(json, "dir/config.json: 'rope_parameters.rope_type' is \"longrope\"; supported are");
}

TEST_CASE("what Tokamak does not compute is refused by key and value") {
  refuses(with("architectures", {"GPT2LMHeadModel"}), "'architectures' is [\"GPT2LMHeadModel\"]");
  refuses(with("architectures", "LlamaForCausalLM"), "expected a list of one name");
  refuses(with("model_type", "qwen2"), "'model_type' is \"qwen2\"");
  refuses(with("hidden_act", "gelu"), "'hidden_act' is \"gelu\"; only \"silu\"");
  refuses(with("attention_bias", true), "'attention_bias' is true");
  refuses(with("mlp_bias", true), "'mlp_bias' is true");
  refuses(with("num_local_experts", 8), "'num_local_experts' is 8");
  refuses(with("quantization_config", {{"bits", 4}}), "quantised weights");
  refuses(with("auto_map", {{"AutoModel", "x.py"}}), "code of their own");
  refuses(with("pretraining_tp", 2), "'pretraining_tp' is 2");
  refuses(with("partial_rotary_factor", 0.5), "'partial_rotary_factor' is 0.5");
  refuses(with("sliding_window", 100), "'sliding_window' is 100; LlamaForCausalLM has no windows");
  CHECK(error_of(with("sliding_window", 2048)).empty());
  refuses(with("layer_types", {"full_attention", "sliding_attention"}),
          "LlamaForCausalLM has full_attention in all layers of this file");
}

TEST_CASE("windows are those that transformers gives the layers of each architecture") {
  using enum LayerType;
  const auto read = [](const std::string& name, const Json& keys) {
    Json json = small_json();
    json.erase("model_type");
    json["architectures"] = {name};
    json["num_hidden_layers"] = 4;
    json.update(keys);
    return json;
  };
  struct Windows {
    int64_t window;
    std::vector<LayerType> types;
    bool operator==(const Windows&) const = default;
  };
  const auto of = [&](const std::string& name, const Json& keys) {
    const ModelConfig model = parse_hf_config(read(name, keys).dump(), "x").model;
    return Windows{model.sliding_window, model.layer_types};
  };
  const Json types = {"full_attention", "sliding_attention", "full_attention", "sliding_attention"};
  const Json all = Json(4, "sliding_attention"), none = Json(4, "full_attention");

  const std::string mistral = "MistralForCausalLM";
  CHECK(of(mistral, Json::object()) == Windows{4096, {}});  // an absent key is no window only to other programs
  CHECK(of(mistral, {{"sliding_window", nullptr}}) == Windows{0, {}});
  CHECK(of(mistral, {{"sliding_window", 7}}) == Windows{7, {}});
  CHECK(of(mistral, {{"sliding_window", 7}, {"layer_types", all}}) == Windows{7, {}});
  refuses(read(mistral, {{"sliding_window", 7}, {"layer_types", types}}), "MistralForCausalLM has sliding_attention");
  refuses(read(mistral, {{"sliding_window", nullptr}, {"layer_types", types}}), "has full_attention in all layers");
  refuses(read(mistral, {{"sliding_window", 0}}), "'sliding_window' is 0");

  const std::string ministral = "MinistralForCausalLM";
  CHECK(of(ministral, Json::object()) == Windows{4096, {}});
  CHECK(of(ministral, {{"sliding_window", 7}, {"layer_types", types}}) == Windows{7, {kFull, kSliding}});
  CHECK(of(ministral, {{"sliding_window", 7}, {"layer_types", none}}) == Windows{0, {}});

  const std::string qwen = "Qwen3ForCausalLM";
  CHECK(of(qwen, {{"sliding_window", 7}}) == Windows{0, {}});
  const Json used = {{"use_sliding_window", true}, {"sliding_window", 7}};
  const auto more = [&](Json keys) {
    keys.update(used);
    return keys;
  };
  CHECK(of(qwen, used) == Windows{0, {}});  // max_window_layers is 28
  CHECK(of(qwen, more({{"max_window_layers", 0}})) == Windows{7, {}});
  CHECK(of(qwen, more({{"max_window_layers", 3}})) == Windows{7, {kFull, kFull, kFull, kSliding}});
  CHECK(of(qwen, more({{"max_window_layers", 3}, {"layer_types", types}})) == Windows{7, {kFull, kSliding}});
  CHECK(of(qwen, {{"use_sliding_window", true}, {"max_window_layers", 0}}) == Windows{4096, {}});
  refuses(read(qwen, {{"layer_types", types}}), "has full_attention in all layers");
  refuses(read(qwen, more({{"layer_types", {"chunked_attention", "", "", ""}}})), "'layer_types[0]'");
  refuses(read(qwen, more({{"layer_types", {"full_attention"}}})), "there are 4 layers");

  const std::string smol = "SmolLM3ForCausalLM";
  CHECK(of(smol, {{"sliding_window", 7}}) == Windows{0, {}});
  refuses(read(smol, used), "windows beside no_rope_layers are not supported");
  refuses(read(smol, {{"layer_types", types}}), "SmolLM3ForCausalLM has full_attention in all layers");
}

TEST_CASE("SmolLM3 has no rotary embeddings where its list has a 0, and without a list in every 4th layer") {
  const auto read = [](const Json& keys) {
    Json json = small_json();
    for (const char* key : {"model_type", "rope_theta", "num_key_value_heads", "tie_word_embeddings"}) json.erase(key);
    json["architectures"] = {"SmolLM3ForCausalLM"};
    json["num_hidden_layers"] = 8;
    json.update(keys);
    return json;
  };
  const auto of = [&](const Json& keys) { return parse_hf_config(read(keys).dump(), "x").model; };
  CHECK(of(Json::object()).no_rope_layers == std::vector<int64_t>{1, 1, 1, 0});
  CHECK(of({{"no_rope_layer_interval", 2}}).no_rope_layers == std::vector<int64_t>{1, 0});
  CHECK(of({{"no_rope_layers", {1, 0, 0, 1, 1, 0, 0, 1}}}).no_rope_layers == std::vector<int64_t>{1, 0, 0, 1});
  CHECK(of({{"no_rope_layers", {1, 1, 1, 1, 1, 1, 1, 1}}}).no_rope_layers.empty());
  CHECK(of(Json::object()).rope_theta == 2e6);
  CHECK(of(Json::object()).kv_heads() == 4);
  CHECK(of(Json::object()).tie_word_embeddings);
  refuses(read({{"no_rope_layers", {1, 0}}}), "there are 8 layers");
  refuses(read({{"num_hidden_layers", int64_t{1} << 60}}), "model.num_hidden_layers");  // before a list is made
  refuses(read({{"no_rope_layers", {1, 0, 0, 1, 1, 0, 0, 2}}}), "model.no_rope_layers");
}

TEST_CASE("a model is exported as the first class that has all its switches") {
  using enum LayerType;
  ModelConfig model = small_model();
  const auto is = [&] { return std::string(hf_architecture(model).name); };
  CHECK(is() == "LlamaForCausalLM");
  model.sliding_window = 5;
  CHECK(is() == "MistralForCausalLM");
  model.layer_types = {kFull, kSliding};
  CHECK(is() == "MinistralForCausalLM");
  model.qkv_bias = true;
  CHECK(is() == "Qwen2ForCausalLM");
  model.no_rope_layers = {0, 1};
  CHECK_THROWS_WITH(is(), Catch::Contains("no architecture of transformers has model.qkv_bias and "
                                          "model.sliding_window and model.no_rope_layers"));
  model.layer_types = {kFull};
  model.qkv_bias = false;
  CHECK(is() == "SmolLM3ForCausalLM");
}

TEST_CASE("a config.json of wrong types or sizes is refused by key") {
  refuses(with("hidden_size", "64"), "'hidden_size' is \"64\"; expected a whole number");
  refuses(with("hidden_size", 64.5), "'hidden_size' is 64.5");
  refuses(with("hidden_size", -64), "'hidden_size' is -64");
  refuses(with("hidden_size", nullptr), "'hidden_size' is null; expected a whole number from 0");
  refuses(with("hidden_size", 1 << 21), "model.hidden_size");
  refuses(with("rms_norm_eps", 0), "model.rms_norm_eps");
  refuses(with("rms_norm_eps", "x"), "'rms_norm_eps' is \"x\"; expected a number");
  refuses(with("vocab_size", 0), "'vocab_size' is 0");
  refuses(with("tie_word_embeddings", 1), "'tie_word_embeddings' is 1; expected true or false");
  refuses(with("rope_scaling", {{"factor", 2.0}}), "dir/config.json: 'rope_scaling.rope_type' is missing");
  refuses(with("rope_scaling", {{"rope_type", "linear"}}), "'rope_scaling.factor' is missing; expected a number");
  refuses(with("rope_scaling", 3), "'rope_scaling' is 3; expected an object");
  Json two = with("rope_scaling", {{"rope_type", "yarn"}, {"factor", 2.0}, {"original_max_position_embeddings", 512}});
  two["original_max_position_embeddings"] = 1024;
  refuses(two, "'original_max_position_embeddings' is 1024; that of rope_scaling is 512");
}

TEST_CASE("keys that the architecture does not know are named") {
  const HfConfig hf = parse_hf_config(with("my_own_key", 3).dump(), "x");
  CHECK(hf.unused == std::vector<std::string>{"my_own_key"});
}
