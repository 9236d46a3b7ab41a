#include "optim/weight_rules.h"

#include <catch2/catch.hpp>
#include <map>

#include "base/error.h"
#include "model/parameters.h"
#include "tensor/unit_layout.h"

using namespace tokamak;

namespace {

ModelConfig small_model() {
  ModelConfig config;
  config.hidden_size = 16;
  config.intermediate_size = 24;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.vocab_size = 40;
  config.qk_norm = QkNormKind::kHead;
  return config;
}

std::map<std::string, WeightRule> rules_of(const OptimizerOptions& options) {
  const ParamTable table = make_param_table(small_model());
  const WeightRules rules = weight_rules(options, table);
  std::map<std::string, WeightRule> by_name;
  for (size_t u = 0; u < table.units.size(); ++u) {
    for (size_t weight = 0; const FlatParam& flat : flat_params(table.units[u])) {
      by_name[flat.param->name] = rules.at(u).at(weight++);
    }
  }
  return by_name;
}

std::string error_of(const OptimizerOptions& options) {
  try {
    rules_of(options);
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kConfig);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE(
    "without groups, matrices of layers have the optimizer of the run, all else has AdamW, and vectors no decay") {
  for (const char* name : {"adamw", "muon"}) {
    const auto rules = rules_of({.name = name, .weight_decay = 0.25});
    CHECK(rules.size() == 2 + 1 + 2 * (7 + 4));  // embedding, head, final norm; matrices, two norms and two of heads
    for (const auto& [weight, rule] : rules) {
      INFO(weight);
      const bool is_embedding = weight == "model.embed_tokens.weight" || weight == "lm_head.weight";
      const bool is_vector = weight.find("norm") != std::string::npos;
      CHECK(rule.optimizer == (is_embedding || is_vector ? "adamw" : name));
      CHECK(rule.weight_decay == (is_vector ? 0 : 0.25));
      CHECK(rule.lr_scale == 1);
    }
  }
  CHECK(rules_of({.decay_embeddings = false}).at("lm_head.weight").weight_decay == 0);
  CHECK(rules_of({.decay_embeddings = false}).at("model.layers.1.mlp.up_proj.weight").weight_decay != 0);
}

TEST_CASE("the first group that matches a name decides, and what it leaves out stays") {
  const auto rules = rules_of({.name = "muon",
                               .weight_decay = 0.25,
                               .groups = {{.match = {"*.layers.0.*_proj.weight"}, .name = "adamw", .lr_scale = 0.5},
                                          {.match = {"*o_proj*", "lm_head.weight"}, .weight_decay = {0.125}},
                                          {.match = {"*input_layernorm.weight"}, .lr_scale = 0}}});
  const auto& first = rules.at("model.layers.0.self_attn.o_proj.weight");
  CHECK((first.optimizer == "adamw" && first.lr_scale == 0.5 && first.weight_decay == 0.25));
  const auto& second = rules.at("model.layers.1.self_attn.o_proj.weight");
  CHECK((second.optimizer == "muon" && second.lr_scale == 1 && second.weight_decay == 0.125));
  const auto& head = rules.at("lm_head.weight");
  CHECK((head.optimizer == "adamw" && head.weight_decay == 0.125));
  const auto& norm = rules.at("model.layers.1.input_layernorm.weight");
  CHECK((norm.optimizer == "adamw" && norm.frozen() && norm.weight_decay == 0));
  CHECK(rules.at("model.layers.1.self_attn.q_proj.weight").optimizer == "muon");
  CHECK(!rules.at("model.norm.weight").frozen());
}

TEST_CASE("a pattern without a weight is refused, and so is Muon for vectors, the embedding and the head") {
  using Catch::Contains;
  CHECK_THAT(error_of({.groups = {{.match = {"*"}}, {.match = {"*norm*", "*.q_prj.weight"}}}}),
             Contains("optimizer.groups[1].match has '*.q_prj.weight', which no weight's name matches"));
  for (const char* name : {"model.norm.weight", "model.embed_tokens.weight", "lm_head.weight"}) {
    CHECK_THAT(error_of({.groups = {{.match = {name}, .name = "muon"}}}),
               Contains(str("optimizer.groups[0].name is muon for '", name)));
  }
  CHECK(error_of({.groups = {{.match = {"*_proj.weight"}, .name = "muon"}}}).empty());
}
