// The weights of a config as a table, and the index of each layer's weights in it.
#pragma once

#include <cstdint>
#include <vector>

#include "model/layer_table.h"
#include "model/model_config.h"
#include "tensor/param_table.h"
#include "tensor/tensor.h"
#include "zero/options.h"

namespace tokamak {

// Units in the order of the forward pass: embedding, layers, head (absent if tied), norms (one unit for all). A layer's
// matrices form one unit or, with UnitSize::kProjection, one unit for each piece of its parts. The norms unit lists the
// vectors of each layer (WeightPlace), then the final norm: small, and without weight decay.
ParamTable make_param_table(const ModelConfig& config, UnitSize unit = UnitSize::kLayer);

// Indices into a parameter table: units by kind, a layer's weights by part and WeightRow::at, looked up once.
class WeightIndex {
 public:
  using PartWeights = std::vector<std::vector<Tensor>>;  // [part][at]; one that the config lacks is empty

  WeightIndex(const LayerTable& layers, const ParamTable& table);

  int64_t embedding() const { return embedding_; }
  // The unit that has this piece of layer `l`; one unit may have all.
  int64_t layer(int64_t l, size_t part = 0, int piece = 0) const {
    const bool whole = units_per_layer_ == 1;
    return first_layer_ + l * units_per_layer_ + (whole ? 0 : pieces_before(l, part) + piece);
  }
  // Whether the piece is the first of its unit in the order of forward.
  bool begins_unit(size_t part, int piece) const { return units_per_layer_ > 1 || (part == 0 && piece == 0); }
  int64_t head() const { return head_; }  // the unit whose matrix the head uses
  int64_t norms() const { return norms_; }
  bool tied() const { return head_ == embedding_; }

  // The weights of layer `l` that are vectors, from the norms unit; weights or gradients.
  PartWeights vectors(int64_t l, const std::vector<Tensor>& norms) const;
  // Adds the matrices of a piece, from those of its unit.
  void put(int64_t l, size_t part, int piece, const std::vector<Tensor>& matrices, PartWeights& weights) const;
  Tensor final_norm(const std::vector<Tensor>& norms) const { return norms[final_norm_]; }

 private:
  struct Entry {
    size_t part;
    int piece;
    size_t at;
    size_t matrix;  // index in its unit
  };
  struct Layer {
    std::vector<Entry> matrices, vectors;
    std::vector<size_t> rows;          // per part: the largest `at`, plus 1
    std::vector<int64_t> first_piece;  // per part
  };
  int64_t pieces_before(int64_t l, size_t part) const { return layers_[static_cast<size_t>(l)].first_piece[part]; }

  int64_t embedding_ = 0, first_layer_ = 0, head_ = 0, norms_ = 0, units_per_layer_ = 1;
  std::vector<Layer> layers_;
  size_t final_norm_ = 0;
};

}  // namespace tokamak
