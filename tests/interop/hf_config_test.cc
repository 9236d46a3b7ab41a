// config.json as a whole: round trips, defaults, refusals.
#include "interop/hf_architecture.h"
#include "tests/interop/hf_json.h"

using namespace tokamak;

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
  std::vector<ModelConfig> models(20, small_model());
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
  models[5].qk_norm = QkNormKind::kHead;
  models[6].tie_word_embeddings = true;
  models[7].sliding_window = 5;
  models[8].sliding_window = 5;
  models[8].layer_types = {LayerType::kSliding, LayerType::kFull};
  models[9] = models[8];
  models[9].qk_norm = QkNormKind::kHead;
  models[10].no_rope_layers = {1, 0};
  models[11].qk_norm = QkNormKind::kAll;
  models[11].norm_placement = NormPlacement::kPost;
  models[12] = models[11];
  models[12].sliding_window = 5;
  models[12].layer_types = {LayerType::kSliding, LayerType::kFull};
  models[13] = models[12];
  models[13].rope_scaling = models[3].rope_scaling;
  models[13].rope_local_base_freq = 20;
  models[14] = gemma3_model();
  models[15] = gemma3_model();
  models[15].query_pre_attn_scalar = 144;
  models[15].rope_scaling = {.rope_type = RopeType::kLinear, .factor = 8};
  models[15].final_logit_softcapping = 20.5;
  models[16] = gemma2_model();
  models[17] = gemma2_model();
  models[17].attn_logit_softcapping = models[17].final_logit_softcapping = 0;
  models[17].qkv_bias = models[17].o_bias = true;
  models[18].qkv_bias = models[18].o_bias = true;
  models[19].mlp_bias = true;
  for (const ModelConfig& model : models) {
    const std::string text = render_hf_config(model, WeightType::kF32, {});
    const HfConfig read = parse_hf_config(text, "x");
    CHECK(render_hf_config(read.model, WeightType::kF32, {}) == text);
    CHECK(read.model.qkv_bias == model.qkv_bias);
    CHECK(read.model.o_bias == model.o_bias);
    CHECK(read.model.mlp_bias == model.mlp_bias);
    CHECK(read.model.attn_logit_softcapping == model.attn_logit_softcapping);
    CHECK(read.model.final_logit_softcapping == model.final_logit_softcapping);
    CHECK(read.model.qk_norm == model.qk_norm);
    CHECK(read.model.norm_placement == model.norm_placement);
    CHECK(read.model.sliding_window == model.sliding_window);
    CHECK(read.model.layer_types == model.layer_types);
    CHECK(read.model.no_rope_layers == model.no_rope_layers);
    CHECK(read.model.norm_zero_centered == model.norm_zero_centered);
    CHECK(read.model.hidden_act == model.hidden_act);
    CHECK(read.model.scale_embeddings == model.scale_embeddings);
    CHECK(read.model.query_pre_attn_scalar == model.query_pre_attn_scalar);
    CHECK(read.model.rope_theta == model.rope_theta);
    CHECK(read.model.rope_local_base_freq == model.rope_local_base_freq);
    CHECK(read.model.rope_scaling.mscale_all_dim == model.rope_scaling.mscale_all_dim);
    CHECK(read.unused.empty());
  }
  CHECK(parse_hf_config(render_hf_config(models[4], WeightType::kF32, {}), "x").architecture == "Qwen2ForCausalLM");
  CHECK(parse_hf_config(render_hf_config(models[5], WeightType::kF32, {}), "x").architecture == "Qwen3ForCausalLM");
  models[4].qk_norm = QkNormKind::kHead;
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
  refuses(with("hidden_act", "gelu"), "'hidden_act' is \"gelu\"; that of LlamaForCausalLM is \"silu\"");
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
