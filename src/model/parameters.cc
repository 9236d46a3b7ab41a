#include "model/parameters.h"

#include "base/strings.h"

namespace tokamak {

ParamTable make_param_table(const ModelConfig& config) {
  const int64_t hidden = config.hidden_size;
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t columns) {
    return Param{name, Shape{rows, columns}, 0.0, config.initializer_range, Decay::kYes};
  };
  const auto norm = [](const std::string& name, int64_t width) {
    return Matrix{name, {Param{name, Shape{width}, 1.0, 0.0, Decay::kNo}}};
  };
  const auto bias = [](const std::string& name, int64_t width) {
    return Param{name, Shape{width}, 0.0, 0.0, Decay::kNo};
  };

  ParamTable table;
  const Matrix embedding{"embedding", {matrix("model.embed_tokens.weight", config.vocab_size, hidden)}};
  table.units.push_back({UnitKind::kEmbedding, "embedding", {embedding}});
  for (int64_t l = 0; l < config.num_hidden_layers; ++l) {
    const std::string attention = str("model.layers.", l, ".self_attn.");
    const std::string mlp = str("model.layers.", l, ".mlp.");
    table.units.push_back({UnitKind::kLayer,
                           str("layer.", l),
                           {{"qkv",
                             {matrix(attention + "q_proj.weight", config.q_width(), hidden),
                              matrix(attention + "k_proj.weight", config.kv_width(), hidden),
                              matrix(attention + "v_proj.weight", config.kv_width(), hidden)}},
                            {"o", {matrix(attention + "o_proj.weight", hidden, config.q_width())}},
                            {"gate_up",
                             {matrix(mlp + "gate_proj.weight", config.intermediate_size, hidden),
                              matrix(mlp + "up_proj.weight", config.intermediate_size, hidden)}},
                            {"down", {matrix(mlp + "down_proj.weight", hidden, config.intermediate_size)}}}});
  }
  if (!config.tie_word_embeddings) {
    table.units.push_back({UnitKind::kHead, "head", {{"head", {matrix("lm_head.weight", config.vocab_size, hidden)}}}});
  }
  Unit norms{UnitKind::kNorms, "norms", {}};
  for (int64_t l = 0; l < config.num_hidden_layers; ++l) {
    const std::string layer = str("model.layers.", l, "."), attention = layer + "self_attn.";
    norms.matrices.push_back(norm(layer + "input_layernorm.weight", hidden));
    norms.matrices.push_back(norm(layer + "post_attention_layernorm.weight", hidden));
    if (config.qkv_bias) {
      norms.matrices.push_back(
          {attention + "qkv_bias",
           {bias(attention + "q_proj.bias", config.q_width()), bias(attention + "k_proj.bias", config.kv_width()),
            bias(attention + "v_proj.bias", config.kv_width())}});
    }
    if (config.qk_norm) {
      norms.matrices.push_back(norm(attention + "q_norm.weight", config.head_size()));
      norms.matrices.push_back(norm(attention + "k_norm.weight", config.head_size()));
    }
  }
  norms.matrices.push_back(norm("model.norm.weight", hidden));
  table.units.push_back(std::move(norms));
  return table;
}

}  // namespace tokamak
