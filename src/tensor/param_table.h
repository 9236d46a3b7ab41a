// THE list of a model's weights, used by initialisation, sharding, the optimizer, checkpoints and exports. A weight has
// its Hugging Face name. A fused matrix is a stack, by rows, of named weights. A unit is gathered as a whole: the
// embedding, one layer or a part of it, the head, or all norm weights (with the biases).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace tokamak {

enum class Decay { kYes, kNo };

// Factors of the run's lr, decay and eps for one weight (model/mup.h), with AdamW. The spectral norm of Muon's update
// does not grow with the fan-in, so Muon takes the fan-in's growth back.
struct UpdateScale {
  double lr = 1, decay = 1, eps = 1;
  double fan_in = 1;  // columns, divided by those of the base model
};

struct Param {
  std::string name;      // "model.layers.0.self_attn.q_proj.weight"
  Shape shape;           // (rows, columns), or (C) for a norm
  double init_mean = 0;  // initial values are normal(mean, std); std 0: constant
  double init_std = 0;
  Decay decay = Decay::kYes;
  UpdateScale update = {};
};

// One operand of an operation: parameters stacked by rows, or concatenated vectors, contiguous in this order.
struct Matrix {
  std::string name;          // "qkv"
  std::vector<Param> parts;  // equal numbers of columns

  int64_t count() const;
  Shape shape() const;  // (sum of rows, columns); for vectors (sum of lengths)
};

// The granularity of gathers and reductions.
enum class UnitKind { kEmbedding, kLayer, kHead, kNorms };

struct Unit {
  UnitKind kind;
  std::string name;  // "embedding", "layer.3", "layer.3.down", "head", "norms"
  std::vector<Matrix> matrices;

  int64_t count() const;  // elements, without padding
};

struct ParamTable {
  std::vector<Unit> units;
  int64_t units_per_layer = 1;  // a layer's units are consecutive

  int64_t count() const;

  // training.max_unit_grad_norm clips these by themselves: the embedding, each layer, however many units hold it, the
  // head, and all norms. `clip_unit`: the number of the one that a unit belongs to.
  int64_t clip_unit(int64_t unit) const;
  int64_t clip_units() const { return clip_unit(std::ssize(units) - 1) + 1; }
};

}  // namespace tokamak
