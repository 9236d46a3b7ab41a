// The weights of a Llama decoder, with Hugging Face's names and shapes, grouped into units and fused matrices.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/model_config.h"
#include "tensor/param_table.h"
#include "tensor/tensor.h"
#include "zero/options.h"

namespace tokamak {

// Units in the order of the forward pass: embedding, layers, head (absent if tied), norms (one unit for all).
// A layer's matrices are qkv, o, gate_up, down: of one unit or, with UnitSize::kProjection, of one for each LayerPart.
// The norms unit lists, for each layer: input norm, post-attention norm
// and, if the config has them, the qkv bias and the query and key head norms. The final norm comes last. All of these
// are small vectors without weight decay.
ParamTable make_param_table(const ModelConfig& config, UnitSize unit = UnitSize::kLayer);

// A layer's matrices in the order of the forward pass: qkv and o; gate_up; down.
enum class LayerPart { kAttention, kGateUp, kDown };
inline constexpr std::array kLayerParts = {LayerPart::kAttention, LayerPart::kGateUp, LayerPart::kDown};

// A layer's weights, or their gradients. A vector that the config lacks is empty.
struct LayerWeights {
  Tensor qkv;                              // ((Hq + 2 Hkv) D, C)
  Tensor o;                                // (C, Hq D)
  Tensor gate_up;                          // (2 I, C)
  Tensor down;                             // (C, I)
  Tensor input_norm, post_attention_norm;  // (C)
  Tensor qkv_bias;                         // ((Hq + 2 Hkv) D)
  Tensor q_norm, k_norm;                   // (D)
};

// Indices into a parameter table: units by kind, a unit's matrices by name, looked up once.
class WeightIndex {
 public:
  explicit WeightIndex(const ParamTable& table);

  int64_t embedding() const { return embedding_; }
  // The unit that has this part of layer `l`; one unit may have all.
  int64_t layer(int64_t l, LayerPart part = LayerPart::kAttention) const {
    return first_layer_ + l * units_per_layer_ + (units_per_layer_ == 1 ? 0 : static_cast<int64_t>(part));
  }
  int64_t head() const { return head_; }  // the unit whose matrix the head uses
  int64_t norms() const { return norms_; }
  bool tied() const { return head_ == embedding_; }

  // The vectors of layer `l`, from the norms unit; weights or gradients.
  LayerWeights layer_vectors(int64_t l, const std::vector<Tensor>& norms) const;
  // Adds the matrices of a part, from those of its unit.
  void put(LayerPart part, const std::vector<Tensor>& matrices, LayerWeights& weights) const;
  Tensor final_norm(const std::vector<Tensor>& norms) const { return norms[final_norm_]; }

 private:
  struct Entry {
    size_t matrix;  // index in its unit
    Tensor LayerWeights::*weight;
  };
  int64_t embedding_ = 0, first_layer_ = 0, head_ = 0, norms_ = 0, units_per_layer_ = 1;
  std::array<std::vector<Entry>, kLayerParts.size()> matrices_;  // of each part, the same for every layer
  std::vector<std::vector<Entry>> vectors_;                      // per layer, in the norms unit
  size_t final_norm_ = 0;
};

}  // namespace tokamak
