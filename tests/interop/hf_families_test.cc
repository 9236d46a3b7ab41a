// Differences between the classes of transformers: layers, rotary embeddings, scales, defaults.
#include "interop/hf_architecture.h"
#include "tests/interop/hf_json.h"

using namespace tokamak;

namespace {

// Without the keys whose absence means something else in a Gemma than in a Llama.
Json gemma_json(const char* architecture, int64_t layers, const Json& keys) {
  Json json = small_json();
  for (const char* key :
       {"model_type", "rope_theta", "head_dim", "num_key_value_heads", "tie_word_embeddings", "hidden_act"}) {
    json.erase(key);
  }
  json["architectures"] = {architecture};
  json["num_hidden_layers"] = layers;
  json.update(keys);
  return json;
}

}  // namespace

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

TEST_CASE("OLMo 3 has windows in three of four layers, and rotary embeddings by type of layer") {
  using enum LayerType;
  const auto read = [](const Json& keys) {
    Json json = small_json();
    for (const char* key : {"model_type", "rope_theta"}) json.erase(key);
    json["architectures"] = {"Olmo3ForCausalLM"};
    json["num_hidden_layers"] = 8;
    json.update(keys);
    return json;
  };
  const auto of = [&](const Json& keys) { return parse_hf_config(read(keys).dump(), "x").model; };
  const ModelConfig plain = of(Json::object());
  CHECK(plain.layer_types == std::vector{kSliding, kSliding, kSliding, kFull});
  CHECK(plain.sliding_window == 4096);
  CHECK(plain.rope_theta == 500000);
  CHECK(plain.rope_local_base_freq == 0);  // as in full layers
  CHECK(of({{"sliding_window", nullptr}}).sliding_window == 0);

  const Json linear = {{"rope_type", "linear"}, {"factor", 2.0}};
  CHECK(of({{"sliding_window", nullptr}, {"rope_scaling", linear}}).rope_local_base_freq == 0);

  // Old keys are those of full layers. Sliding layers keep the class's theta.
  const ModelConfig old = of({{"rope_theta", 100}, {"rope_scaling", linear}});
  CHECK(old.rope_theta == 100);
  CHECK(old.rope_scaling.rope_type == RopeType::kLinear);
  CHECK(old.rope_local_base_freq == 500000);

  const Json full = {{"rope_type", "linear"}, {"rope_theta", 100}, {"factor", 2.0}};
  const auto nested = [&](Json sliding) {
    return Json{{"rope_parameters", {{"full_attention", full}, {"sliding_attention", std::move(sliding)}}}};
  };
  const ModelConfig both = of(nested({{"rope_type", "default"}, {"rope_theta", 20}}));
  CHECK(both.rope_theta == 100);
  CHECK(both.rope_scaling.factor == 2);
  CHECK(both.rope_local_base_freq == 20);
  refuses(read(nested(full)),
          "'rope_parameters.sliding_attention.rope_type' is \"linear\"; sliding layers have no scaling");
  refuses(read({{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 20}}}}),
          "Olmo3ForCausalLM reads it for each type of layer");
}

TEST_CASE("Gemma 3 has windows in five of six layers, GeGLU, 1 + weight and scales of its own") {
  using enum LayerType;
  const auto read = [](const Json& keys) { return gemma_json("Gemma3ForCausalLM", 12, keys); };
  const auto of = [&](const Json& keys) { return parse_hf_config(read(keys).dump(), "x").model; };
  const ModelConfig plain = of(Json::object());
  CHECK(plain.layer_types == std::vector{kSliding, kSliding, kSliding, kSliding, kSliding, kFull});
  CHECK(plain.sliding_window == 4096);
  CHECK(plain.rope_theta == 1e6);
  CHECK(plain.rope_local_base_freq == 1e4);
  CHECK(plain.head_size() == 256);
  CHECK(plain.kv_heads() == 4);
  CHECK(plain.tie_word_embeddings);
  CHECK(plain.query_pre_attn_scalar == 0);  // 256, as head_dim
  CHECK(of({{"head_dim", 128}}).query_pre_attn_scalar == 256);
  CHECK(of({{"query_pre_attn_scalar", 144}}).query_pre_attn_scalar == 144);
  CHECK(of({{"sliding_window_pattern", 2}}).layer_types == std::vector{kSliding, kFull});
  CHECK(of({{"rope_local_base_freq", 20}}).rope_local_base_freq == 20);
  CHECK(of({{"hidden_act", "gelu"}}).hidden_act == HiddenAct::kGeluTanh);  // only hidden_activation counts
  refuses(read({{"hidden_activation", "gelu"}}), "'hidden_activation' is \"gelu\"; that of Gemma3ForCausalLM is");
  CHECK(plain.final_logit_softcapping == 0);
  CHECK(of({{"final_logit_softcapping", 30.0}}).final_logit_softcapping == 30);
  CHECK(of({{"final_logit_softcapping", nullptr}}).final_logit_softcapping == 0);
  refuses(read({{"final_logit_softcapping", 0.0}}), "'final_logit_softcapping' is 0.0; it must be above 0, or null");
  refuses(read({{"attn_logit_softcapping", 50.0}}), "'attn_logit_softcapping' is 50.0; its class has no such cap");
  refuses(read({{"use_bidirectional_attention", true}}), "'use_bidirectional_attention' is true");
}

TEST_CASE("Gemma 2 has windows in every other layer, and caps unless they are null") {
  using enum LayerType;
  const auto read = [](const Json& keys) { return gemma_json("Gemma2ForCausalLM", 4, keys); };
  const auto of = [&](const Json& keys) { return parse_hf_config(read(keys).dump(), "x").model; };
  const ModelConfig plain = of(Json::object());
  CHECK(plain.layer_types == std::vector{kSliding, kFull});
  CHECK(plain.sliding_window == 4096);
  CHECK(plain.rope_theta == 10000);
  CHECK(plain.rope_local_base_freq == 0);
  CHECK(plain.qk_norm == QkNormKind::kNone);
  CHECK(plain.head_size() == 256);
  CHECK(plain.tie_word_embeddings);
  CHECK(plain.attn_logit_softcapping == 50);
  CHECK(plain.final_logit_softcapping == 30);
  const ModelConfig uncapped = of({{"attn_logit_softcapping", nullptr}, {"final_logit_softcapping", nullptr}});
  CHECK(uncapped.attn_logit_softcapping == 0);
  CHECK(uncapped.final_logit_softcapping == 0);
  CHECK(of({{"attention_bias", true}}).o_bias);
}

TEST_CASE("attention_bias is of all projections of attention, and only some classes have it") {
  const auto of = [](const std::string& name, const Json& keys) {
    Json json = small_json();
    json.erase("model_type");
    json["architectures"] = {name + "ForCausalLM"};
    json.update(keys);
    return json;
  };
  for (const std::string name : {"Llama", "Qwen3", "SmolLM3", "Olmo2"}) {
    const ModelConfig model = parse_hf_config(of(name, {{"attention_bias", true}}).dump(), "x").model;
    CHECK((model.qkv_bias && model.o_bias && !model.mlp_bias));
  }
  CHECK(parse_hf_config(of("Llama", {{"mlp_bias", true}}).dump(), "x").model.mlp_bias);
  refuses(of("Mistral", {{"attention_bias", true}}), "'attention_bias' is true; MistralForCausalLM has no such biases");
  refuses(of("Qwen2", {{"attention_bias", true}}), "Qwen2ForCausalLM has no such biases");
  refuses(of("Qwen3", {{"mlp_bias", true}}), "'mlp_bias' is true; Qwen3ForCausalLM has no such biases");
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
  model.o_bias = true;
  CHECK_THROWS_WITH(is(), Catch::Contains("model.qkv_bias and model.o_bias and model.sliding_window"));
  model.sliding_window = 0;
  model.layer_types.clear();
  model.mlp_bias = true;
  CHECK(is() == "LlamaForCausalLM");
  model.qkv_bias = false;
  CHECK_THROWS_WITH(is(), Catch::Contains("has model.o_bias and model.mlp_bias"));
  model.qkv_bias = true;
  model.o_bias = model.mlp_bias = false;
  model.sliding_window = 5;
  model.layer_types = {kFull, kSliding};
  model.no_rope_layers = {0, 1};
  CHECK_THROWS_WITH(is(), Catch::Contains("no architecture of transformers has model.qkv_bias and "
                                          "model.sliding_window and model.no_rope_layers"));
  model.layer_types = {kFull};
  model.qkv_bias = false;
  CHECK(is() == "SmolLM3ForCausalLM");
  model.no_rope_layers.clear();
  model.qk_norm = QkNormKind::kAll;
  CHECK_THROWS_WITH(is(), Catch::Contains("no architecture of transformers has model.qk_norm: all"));
  model.norm_placement = NormPlacement::kPost;
  CHECK(is() == "Olmo2ForCausalLM");
  model.layer_types = {kSliding, kFull};
  CHECK(is() == "Olmo3ForCausalLM");
  model.rope_scaling = {.rope_type = RopeType::kLinear, .factor = 2};  // in sliding layers, too
  CHECK_THROWS_WITH(is(), Catch::Contains("model.sliding_window and model.rope_scaling"));
  model.rope_local_base_freq = 20;
  CHECK(is() == "Olmo3ForCausalLM");
  model.rope_scaling = {};
  model.layer_types = {kFull};
  model.rope_local_base_freq = 0;
  model.norm_placement = NormPlacement::kBoth;
  CHECK_THROWS_WITH(is(), Catch::Contains("model.qk_norm: all and model.norm_placement: both"));
  model = gemma2_model();
  CHECK(is() == "Gemma2ForCausalLM");
  model = gemma3_model();
  CHECK(is() == "Gemma3ForCausalLM");
  model.final_logit_softcapping = 30;
  CHECK(is() == "Gemma3ForCausalLM");
  model.attn_logit_softcapping = 50;
  CHECK_THROWS_WITH(is(), Catch::Contains("model.attn_logit_softcapping: 50 and model.final_logit_softcapping: 30"));
  model.attn_logit_softcapping = model.final_logit_softcapping = 0;
  model.query_pre_attn_scalar = 144.5;
  CHECK_THROWS_WITH(is(), Catch::Contains("model.query_pre_attn_scalar: 144.5"));
  model.query_pre_attn_scalar = 0;
  model.norm_zero_centered = false;
  CHECK_THROWS_WITH(is(), Catch::Contains("model.hidden_act: gelu_pytorch_tanh and model.scale_embeddings"));
}
