// The weights of a config as a table, and the index of each layer's weights in it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/layer_table.h"
#include "model/model_config.h"
#include "tensor/param_table.h"
#include "tensor/tensor.h"
#include "zero/options.h"

namespace tokamak {

// Units in the order of the forward pass: embedding, layers, head (absent if tied), norms (one unit for all). A layer's
// matrices form one unit or, with UnitSize::kProjection, one unit for each piece of its parts. The norms unit lists the
// vectors of each layer (WeightPlace), then the embedding's norm if there is one, then the final norm. They are small
// and have no weight decay.
ParamTable make_param_table(const ModelConfig& config, UnitSize unit = UnitSize::kLayer);

// Indices into the table of make_param_table(): units by kind, a layer's weights by part and WeightRow::id.
class WeightIndex {
 public:
  WeightIndex(const LayerTable& layers, const ParamTable& table);

  int64_t embedding() const { return 0; }
  // The unit with this piece of layer `l`. With UnitSize::kLayer one unit has all pieces.
  int64_t layer(int64_t l, size_t part = 0, int piece = 0) const {
    const int64_t within = units_per_layer_ == 1 ? 0 : at(l, part).first_piece + piece;
    return embedding() + 1 + l * units_per_layer_ + within;
  }
  // Whether the piece is the first of its unit in the order of forward.
  bool begins_unit(size_t part, int piece) const { return units_per_layer_ > 1 || (part == 0 && piece == 0); }
  int64_t head() const { return head_; }  // the unit whose matrix the head uses
  int64_t norms() const { return norms_; }
  bool tied() const { return head_ == embedding(); }

  // A weight of layer `l` or its gradient, among the matrices of its unit or the tensors of the norms unit. Empty if
  // the config lacks it.
  Tensor find(int64_t l, size_t part, int id, std::span<const Tensor> matrices, std::span<const Tensor> norms) const {
    const std::vector<Weight>& weights = at(l, part).weights;
    const Weight weight = id < std::ssize(weights) ? weights[id] : Weight{};
    const auto tensors = weight.place == WeightPlace::kMatrix ? matrices : norms;
    return weight.index < tensors.size() ? tensors[weight.index] : Tensor();
  }
  Tensor final_norm(std::span<const Tensor> norms) const { return norms.back(); }
  Tensor embedding_norm(std::span<const Tensor> norms) const { return norms[norms.size() - 2]; }  // if it exists

 private:
  struct Weight {
    WeightPlace place = WeightPlace::kMatrix;
    size_t index = SIZE_MAX;  // in its unit; SIZE_MAX: the config lacks the weight
  };
  struct PartWeights {
    int64_t first_piece;          // index of the part's first piece in the layer
    std::vector<Weight> weights;  // by WeightRow::id
  };
  const PartWeights& at(int64_t l, size_t part) const { return layers_[l][part]; }

  int64_t head_, norms_, units_per_layer_;
  std::vector<std::vector<PartWeights>> layers_;  // [layer][part]
};

}  // namespace tokamak
