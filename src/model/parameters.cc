#include "model/parameters.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"

namespace tokamak {

namespace {

// A layer's vectors in the order of the norms unit.
template <class Visit>
void for_each_vector(const LayerTable::Kind& kind, int64_t l, const Visit& visit) {
  for (const WeightPlace place : {WeightPlace::kInputNorm, WeightPlace::kVector}) {
    for (size_t part = 0; part < kind.parts.size(); ++part) {
      for (const WeightRow& row : kind.parts[part]->weights(l)) {
        if (row.place == place) visit(part, row);
      }
    }
  }
}

// One unit for the layer, or one for each piece.
std::vector<Unit> layer_units(const LayerTable::Kind& kind, int64_t l, UnitSize size) {
  std::vector<Unit> units;
  if (size == UnitSize::kLayer) units.push_back({UnitKind::kLayer, str("layer.", l), {}});
  for (const auto& part : kind.parts) {
    const size_t first = units.size();
    if (size == UnitSize::kProjection) {
      for (const char* piece : part->pieces()) units.push_back({UnitKind::kLayer, str("layer.", l, ".", piece), {}});
    }
    for (WeightRow& row : part->weights(l)) {
      if (row.place != WeightPlace::kMatrix) continue;
      Unit& unit = size == UnitSize::kLayer ? units[0] : units.at(first + static_cast<size_t>(row.piece));
      unit.matrices.push_back(std::move(row.matrix));
    }
  }
  return units;
}

}  // namespace

ParamTable make_param_table(const ModelConfig& config, UnitSize unit) {
  const LayerTable layers(config);
  const auto rows_of_vocabulary = [&](const char* name, const char* weight) {
    const Shape shape{config.vocab_size, config.hidden_size};
    return std::vector<Matrix>{{name, {{weight, shape, 0.0, config.initializer_range, Decay::kYes}}}};
  };
  ParamTable table;
  table.units.push_back(
      {UnitKind::kEmbedding, "embedding", rows_of_vocabulary("embedding", "model.embed_tokens.weight")});
  Unit norms{UnitKind::kNorms, "norms", {}};
  for (int64_t l = 0; l < layers.layers(); ++l) {
    std::vector<Unit> units = layer_units(layers.kind(l), l, unit);
    TOKAMAK_CHECK(l == 0 || table.units_per_layer == std::ssize(units), "layers differ in their number of units");
    table.units_per_layer = std::ssize(units);
    std::move(units.begin(), units.end(), std::back_inserter(table.units));
    for_each_vector(layers.kind(l), l, [&](size_t, const WeightRow& row) { norms.matrices.push_back(row.matrix); });
  }
  if (!config.tie_word_embeddings) {
    table.units.push_back({UnitKind::kHead, "head", rows_of_vocabulary("head", "lm_head.weight")});
  }
  if (config.embedding_norm) {
    norms.matrices.push_back(norm_weight("model.embed_norm.weight", config.hidden_size, config.norm_offset()));
  }
  norms.matrices.push_back(norm_weight("model.norm.weight", config.hidden_size, config.norm_offset()));
  table.units.push_back(std::move(norms));
  apply_mup(config, table);
  return table;
}

WeightIndex::WeightIndex(const LayerTable& layers, const ParamTable& table)
    : head_(embedding()), norms_(std::ssize(table.units) - 1), units_per_layer_(table.units_per_layer) {
  if (table.units[norms_ - 1].kind == UnitKind::kHead) head_ = norms_ - 1;
  size_t vectors = 0;
  for (int64_t l = 0; l < layers.layers(); ++l) {
    const LayerTable::Kind& kind = layers.kind(l);
    std::vector<PartWeights>& parts = layers_.emplace_back();
    std::vector<size_t> matrices(static_cast<size_t>(units_per_layer_));  // matrices found so far, per unit
    int64_t pieces = 0;
    const auto put = [&](size_t part, const WeightRow& row, size_t index) {
      std::vector<Weight>& weights = parts[part].weights;
      weights.resize(std::max(weights.size(), static_cast<size_t>(row.id) + 1));
      weights[row.id] = {row.place, index};
    };
    for (size_t part = 0; part < kind.parts.size(); ++part) {
      parts.push_back({pieces, {}});
      pieces += std::ssize(kind.parts[part]->pieces());
      for (const WeightRow& row : kind.parts[part]->weights(l)) {
        if (row.place != WeightPlace::kMatrix) continue;
        put(part, row, matrices.at(layer(l, part, row.piece) - layer(l))++);
      }
    }
    for_each_vector(kind, l, [&](size_t part, const WeightRow& row) { put(part, row, vectors++); });
  }
}

}  // namespace tokamak
