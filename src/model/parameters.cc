#include "model/parameters.h"

#include <iterator>
#include <optional>

#include "base/error.h"

namespace tokamak {

ParamTable make_param_table(const ModelConfig& config, UnitSize unit) {
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
    const std::string layer = str("layer.", l);
    const Matrix qkv{"qkv",
                     {matrix(attention + "q_proj.weight", config.q_width(), hidden),
                      matrix(attention + "k_proj.weight", config.kv_width(), hidden),
                      matrix(attention + "v_proj.weight", config.kv_width(), hidden)}};
    const Matrix o{"o", {matrix(attention + "o_proj.weight", hidden, config.q_width())}};
    const Matrix gate_up{"gate_up",
                         {matrix(mlp + "gate_proj.weight", config.intermediate_size, hidden),
                          matrix(mlp + "up_proj.weight", config.intermediate_size, hidden)}};
    const Matrix down{"down", {matrix(mlp + "down_proj.weight", hidden, config.intermediate_size)}};
    if (unit == UnitSize::kLayer) {
      table.units.push_back({UnitKind::kLayer, layer, {qkv, o, gate_up, down}});
      continue;
    }
    table.units_per_layer = std::ssize(kLayerParts);
    table.units.push_back({UnitKind::kLayer, layer + ".attention", {qkv, o}});
    table.units.push_back({UnitKind::kLayer, layer + ".gate_up", {gate_up}});
    table.units.push_back({UnitKind::kLayer, layer + ".down", {down}});
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

namespace {

struct Named {
  const char* name;  // as in make_param_table; for a vector, the part after "model.layers.L."
  Tensor LayerWeights::*weight;
};
struct NamedMatrix : Named {
  LayerPart part;
};
constexpr NamedMatrix kMatrices[] = {{{"qkv", &LayerWeights::qkv}, LayerPart::kAttention},
                                     {{"o", &LayerWeights::o}, LayerPart::kAttention},
                                     {{"gate_up", &LayerWeights::gate_up}, LayerPart::kGateUp},
                                     {{"down", &LayerWeights::down}, LayerPart::kDown}};
constexpr Named kVectors[] = {{"input_layernorm.weight", &LayerWeights::input_norm},
                              {"post_attention_layernorm.weight", &LayerWeights::post_attention_norm},
                              {"self_attn.qkv_bias", &LayerWeights::qkv_bias},
                              {"self_attn.q_norm.weight", &LayerWeights::q_norm},
                              {"self_attn.k_norm.weight", &LayerWeights::k_norm}};

std::optional<size_t> find_matrix(const Unit& unit, const std::string& name) {
  for (size_t m = 0; m < unit.matrices.size(); ++m) {
    if (unit.matrices[m].name == name) return m;
  }
  return std::nullopt;
}

size_t matrix_of(const Unit& unit, const std::string& name) {
  const std::optional<size_t> found = find_matrix(unit, name);
  TOKAMAK_CHECK(found.has_value(), unit.name, " has no ", name);
  return *found;
}

}  // namespace

WeightIndex::WeightIndex(const ParamTable& table) : head_(-1), units_per_layer_(table.units_per_layer) {
  int64_t units = 0;  // of layers
  for (size_t u = 0; u < table.units.size(); ++u) {
    const auto unit = static_cast<int64_t>(u);
    switch (table.units[u].kind) {
      case UnitKind::kEmbedding:
        embedding_ = unit;
        break;
      case UnitKind::kLayer:
        if (units++ == 0) first_layer_ = unit;
        break;
      case UnitKind::kHead:
        head_ = unit;
        break;
      case UnitKind::kNorms:
        norms_ = unit;
        break;
    }
  }
  if (head_ < 0) head_ = embedding_;
  for (const NamedMatrix& named : kMatrices) {
    const Unit& unit = table.units[static_cast<size_t>(layer(0, named.part))];
    matrices_[static_cast<size_t>(named.part)].push_back({matrix_of(unit, named.name), named.weight});
  }
  const Unit& norms = table.units[static_cast<size_t>(norms_)];
  for (int64_t l = 0; l < units / units_per_layer_; ++l) {
    std::vector<Entry>& entries = vectors_.emplace_back();
    for (const Named& named : kVectors) {
      if (const auto found = find_matrix(norms, str("model.layers.", l, ".", named.name))) {
        entries.push_back({*found, named.weight});
      }
    }
  }
  final_norm_ = matrix_of(norms, "model.norm.weight");
}

void WeightIndex::put(LayerPart part, const std::vector<Tensor>& matrices, LayerWeights& weights) const {
  for (const Entry& entry : matrices_[static_cast<size_t>(part)]) weights.*entry.weight = matrices[entry.matrix];
}

LayerWeights WeightIndex::layer_vectors(int64_t l, const std::vector<Tensor>& norms) const {
  LayerWeights weights;
  for (const Entry& entry : vectors_[static_cast<size_t>(l)]) weights.*entry.weight = norms[entry.matrix];
  return weights;
}

}  // namespace tokamak
