#include "model/parameters.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr const char* kFinalNorm = "model.norm.weight";

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

size_t matrix_of(const Unit& unit, const std::string& name) {
  const auto found = std::find_if(unit.matrices.begin(), unit.matrices.end(),
                                  [&](const Matrix& matrix) { return matrix.name == name; });
  TOKAMAK_CHECK(found != unit.matrices.end(), unit.name, " has no ", name);
  return static_cast<size_t>(found - unit.matrices.begin());
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
  norms.matrices.push_back(norm_weight(kFinalNorm, config.hidden_size));
  table.units.push_back(std::move(norms));
  return table;
}

WeightIndex::WeightIndex(const LayerTable& layers, const ParamTable& table)
    : head_(-1), units_per_layer_(table.units_per_layer) {
  for (int64_t u = std::ssize(table.units) - 1; u >= 0; --u) {
    switch (table.units[static_cast<size_t>(u)].kind) {
      case UnitKind::kEmbedding:
        embedding_ = u;
        break;
      case UnitKind::kLayer:
        first_layer_ = u;
        break;
      case UnitKind::kHead:
        head_ = u;
        break;
      case UnitKind::kNorms:
        norms_ = u;
        break;
    }
  }
  if (head_ < 0) head_ = embedding_;
  const Unit& norms = table.units[static_cast<size_t>(norms_)];
  final_norm_ = matrix_of(norms, kFinalNorm);
  size_t vector = 0;
  for (int64_t l = 0; l < layers.layers(); ++l) {
    const LayerTable::Kind& kind = layers.kind(l);
    Layer& entries = layers_.emplace_back();
    int64_t pieces = 0;
    for (size_t part = 0; part < kind.parts.size(); ++part) {
      entries.first_piece.push_back(pieces);
      pieces += std::ssize(kind.parts[part]->pieces());
      size_t rows = 0;
      for (const WeightRow& row : kind.parts[part]->weights(l)) {
        const auto at = static_cast<size_t>(row.at);
        rows = std::max(rows, at + 1);
        if (row.place != WeightPlace::kMatrix) continue;
        const int64_t unit =
            first_layer_ + l * units_per_layer_ + (units_per_layer_ == 1 ? 0 : entries.first_piece[part] + row.piece);
        entries.matrices.push_back(
            {part, row.piece, at, matrix_of(table.units[static_cast<size_t>(unit)], row.matrix.name)});
      }
      entries.rows.push_back(rows);
    }
    for_each_vector(kind, l, [&](size_t part, const WeightRow& row) {
      entries.vectors.push_back({part, row.piece, static_cast<size_t>(row.at), vector++});
    });
  }
}

WeightIndex::PartWeights WeightIndex::vectors(int64_t l, const std::vector<Tensor>& norms) const {
  const Layer& layer = layers_[static_cast<size_t>(l)];
  PartWeights weights;
  for (const size_t rows : layer.rows) weights.emplace_back(rows);
  for (const Entry& entry : layer.vectors) weights[entry.part][entry.at] = norms[entry.matrix];
  return weights;
}

void WeightIndex::put(int64_t l, size_t part, int piece, const std::vector<Tensor>& matrices,
                      PartWeights& weights) const {
  for (const Entry& entry : layers_[static_cast<size_t>(l)].matrices) {
    if (entry.part == part && entry.piece == piece) weights[part][entry.at] = matrices[entry.matrix];
  }
}

}  // namespace tokamak
