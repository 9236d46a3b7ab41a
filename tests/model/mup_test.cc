// muP: weights that absorb the published multipliers train like a model that has them in its forward pass.
#include "model/mup.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "base/error.h"
#include "model/golden.h"
#include "optim/grad_norm.h"

using namespace tokamak;

namespace {

ModelConfig sized(std::array<int64_t, 5> sizes) {
  ModelConfig config;
  config.hidden_size = sizes[0];
  config.intermediate_size = sizes[1];
  config.num_attention_heads = sizes[2];
  config.head_dim = sizes[3];
  config.num_hidden_layers = sizes[4];
  config.vocab_size = 61;
  return config;
}

MupOptions based(std::array<int64_t, 5> sizes, double alpha) {
  return {.base_hidden_size = sizes[0],
          .base_intermediate_size = sizes[1],
          .base_num_attention_heads = sizes[2],
          .base_head_dim = sizes[3],
          .base_num_hidden_layers = sizes[4],
          .depth_alpha = alpha};
}

// ||a - b|| / ||b||
double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double(a[i]) - b[i], 2);
    norm += double(b[i]) * b[i];
  }
  return std::sqrt(difference / norm);
}

// q, k, v, o, down and a norm of the last layer, and the three weights outside layers.
std::map<std::string, WeightRule> rules_of(const ModelConfig& model, const OptimizerOptions& options) {
  const ParamTable table = make_param_table(model);
  const WeightRules rules = weight_rules(options, table);
  std::map<std::string, WeightRule> by_name;
  for (size_t u = 0; u < table.units.size(); ++u) {
    for (size_t weight = 0; const FlatParam& flat : flat_params(table.units[u])) {
      by_name[flat.param->name] = rules.at(u).at(weight++);
    }
  }
  return by_name;
}

std::string problem_of(const ModelConfig& model) {
  const std::vector<FieldError> found = model.problems();
  return found.empty() ? "" : found.front().key + ": " + found.front().what + "; " + found.front().hint;
}

}  // namespace

TEST_CASE("steps of AdamW equal those of the published form, which multiplies logits and branches, in float64") {
  const SafetensorsFile file(test_data() + "/mup.safetensors", Kind::kData);
  const auto of_all = [&](const char* key) { return nlohmann::json::parse(file.metadata().at(key)); };
  const auto cases = of_all("cases");
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto& one = cases[i];
    ModelConfig model = sized(one.at("sizes"));
    model.mup = based(one.at("base"), one.at("alpha"));
    model.tie_word_embeddings = one.value("tied", false);
    model.qkv_bias = one.value("qkv_bias", false);
    if (one.value("qk_norm", false)) model.qk_norm = QkNormKind::kHead;
    model.num_key_value_heads = of_all("num_key_value_heads");
    model.rope_theta = of_all("rope_theta");
    model.rms_norm_eps = of_all("rms_norm_eps");
    model.initializer_range = of_all("initializer_range");
    REQUIRE(problem_of(model).empty());
    const int64_t length = of_all("sequence_length"), steps = of_all("steps");
    const auto comm = make_single_comm();
    SmallModel small(model, *comm,
                     {.max_length = length,
                      .optimizer = {.betas = {of_all("betas")[0], of_all("betas")[1]},
                                    .eps = of_all("eps"),
                                    .weight_decay = of_all("weight_decay")}});
    const std::string prefix = str(i, "/");
    small.for_each_part(small.parameters.master(), [&](const Param& param, Tensor part, int64_t) {
      std::fill_n(part.as<float>(), part.count(), static_cast<float>(param.init_mean));
      if (param.init_std == 0) return;
      const std::vector<float> normal = file.values<float>(prefix + "normal/" + param.name);
      for (size_t e = 0; e < normal.size(); ++e) part.as<float>()[e] = static_cast<float>(param.init_std * normal[e]);
    });
    small.parameters.masters_changed(*small.stream);

    const Sequences all(file.values<int32_t>(prefix + "input_ids"), file.values<int32_t>(prefix + "targets"), length);
    const std::vector<float> losses = file.values<float>(prefix + "losses");
    for (int64_t t = 1; t <= steps; ++t) {
      INFO("case " << i << ", step " << t);
      const Sequences batch = all.part(2 * (t - 1), 2, length);
      small.zero_sums();
      small.parameters.begin_step();
      small.model.forward_backward(*small.stream, batch.batch(), small.sums);
      small.model.finish_gradients(*small.stream);
      reduce_and_clip(small.parameters, *small.stream, small.sums, small.control, {});
      CHECK(small.decided(kMeanLoss) == Approx(losses.at(static_cast<size_t>(t - 1))).epsilon(1e-6));
      small.optimizer->step(*small.stream, {.t = t, .lr = of_all("lr"), .control = small.control});
    }
    INFO("case " << i);
    const Sequences last = all.part(2 * steps, 2, length);
    std::vector<float> logits(static_cast<size_t>(2 * length * model.vocab_size));
    small.model.logits(*small.stream, last.batch(), 0,
                       {logits.data(), DType::kF32, Shape{2 * length, model.vocab_size}});
    CHECK(relative_error(logits, file.values<float>(prefix + "logits")) < 1e-5);
    small.for_each_part(small.parameters.master(), [&](const Param& param, Tensor part, int64_t) {
      INFO(param.name);
      const std::vector<float> values(part.as<float>(), part.as<float>() + part.count());
      CHECK(relative_error(values, file.values<float>(prefix + "end/" + param.name)) < 1e-5);
    });
  }
}

TEST_CASE("factors of Muon's lr and decay, for each of its scales") {
  ModelConfig model = sized({64, 256, 8, 16, 8});  // m 4, m_o 8, m_d 16, n 2
  model.mup = based({16, 16, 1, 16, 4}, 0.5);
  OptimizerOptions options = {.name = "muon", .weight_decay = 1, .groups = {{.match = {"*up_proj*"}, .lr_scale = 3}}};
  const double deep = std::sqrt(0.5);  // n^(alpha - 1)
  const auto has = [](const WeightRule& rule, double lr, double decay) {
    CHECK(rule.lr_scale == Approx(lr));
    CHECK(rule.weight_decay == Approx(decay));
  };
  for (const MuonScale scale : {MuonScale::kOriginal, MuonScale::kSpectral, MuonScale::kMatchRmsAdamW}) {
    options.muon.scale = scale;
    const auto rules = rules_of(model, options);
    const double wide = scale == MuonScale::kMatchRmsAdamW ? 2 : 1;  // sqrt(m)
    INFO(enum_name(scale));
    has(rules.at("model.layers.7.self_attn.k_proj.weight"), deep / wide, wide);
    has(rules.at("model.layers.7.mlp.up_proj.weight"), 3 * deep / wide, wide);
    const double wide_o = scale == MuonScale::kMatchRmsAdamW ? std::sqrt(8) : 1, wide_down = wide * wide;
    has(rules.at("model.layers.7.self_attn.o_proj.weight"), 0.5 / wide_o, wide_o / deep);
    has(rules.at("model.layers.7.mlp.down_proj.weight"), 0.5 / wide_down, wide_down / deep);
    has(rules.at("lm_head.weight"), 0.25, 4);  // AdamW
    has(rules.at("model.layers.7.input_layernorm.weight"), deep, 0);
  }
}

TEST_CASE("without a base, and with the model as its own base, every factor is 1") {
  ModelConfig model = sized({64, 256, 8, 16, 8});
  const auto plain = rules_of(model, {});
  model.mup.base_hidden_size = 64;
  CHECK(problem_of(model).empty());
  CHECK(rules_of(model, {}) == plain);
  for (const auto& [name, rule] : plain) {
    INFO(name);
    CHECK((rule.lr_scale == 1 && rule.eps == 1e-8));
  }
}

TEST_CASE("keys of the base that miss or contradict another are refused by name") {
  using Catch::Contains;
  ModelConfig model = sized({64, 256, 8, 16, 8});
  const auto problem = [&](const MupOptions& mup) {
    model.mup = mup;
    return problem_of(model);
  };
  CHECK_THAT(problem({.base_num_hidden_layers = 2}),
             Contains("key 'model.mup.base_num_hidden_layers' (value 2) needs model.mup.base_hidden_size"));
  CHECK_THAT(problem({.base_hidden_size = 32, .base_num_attention_heads = 4}),
             Contains("key 'model.mup.base_intermediate_size' is required") && Contains("32 wide and the model 64"));
  CHECK_THAT(problem({.base_hidden_size = 32, .base_intermediate_size = 128}),
             Contains("key 'model.mup.base_num_attention_heads' is required"));
  CHECK_THAT(problem({.base_hidden_size = -1}), Contains("'model.mup.base_hidden_size' (value -1) must be from 0"));
  CHECK_THAT(problem({.base_hidden_size = 64, .depth_alpha = 0.4}), Contains("model.mup.depth_alpha"));
  model.norm_placement = NormPlacement::kPost;
  CHECK_THAT(problem({.base_hidden_size = 64}), Contains("'model.norm_placement' (value post) is not supported with"));
  model.norm_placement = NormPlacement::kPre;
  model.embedding_norm = true;
  CHECK_THAT(problem({.base_hidden_size = 64}), Contains("'model.embedding_norm' (value true) is not supported with"));
  model.embedding_norm = false;
  model.output_init = OutputInit::kDepth;
  CHECK_THAT(problem({.base_hidden_size = 64}), Contains("'model.output_init' (value depth) is not supported with"));
  model.output_init = OutputInit::kSame;
  model.norm_zero_centered = true;
  CHECK_THAT(problem({.base_hidden_size = 64}), Contains("'model.norm_zero_centered' (value true) is not supported"));
  model.norm_zero_centered = false;
  model.head_dim = 0;
  CHECK_THAT(problem({.base_hidden_size = 32, .base_intermediate_size = 128, .base_num_attention_heads = 5}),
             Contains("'model.mup.base_num_attention_heads' (value 5) must divide model.mup.base_hidden_size (32)"));
}
