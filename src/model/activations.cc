#include "model/activations.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"

namespace tokamak {

namespace {

KeptLayers kept_of(Keep keep, const KeptLayers& chosen, int64_t most) {
  KeptLayers kept;
  if (keep == Keep::kBackward) kept.values.fill(most);
  return keep == Keep::kLayerInputs ? chosen : kept;
}

}  // namespace

template <class Owner>
Shape ActivationPlan::Entry<Owner>::shape(int64_t tokens) const {
  if (layout == Layout::kRows) return {tokens, width};
  return layout == Layout::kByHead ? Shape{width, tokens} : Shape{tokens * width};
}

std::vector<ActivationPlan::Entry<LayerActivations>> ActivationPlan::layer_table(const ModelConfig& config,
                                                                                 DType compute) {
  using A = LayerActivations;
  const Reader others = Reader::kOthers, attention = Reader::kAttention;
  return {
      {&A::x, "input", compute, Layout::kRows, config.hidden_size},
      {&A::rstd1, "rstd1", DType::kF32, Layout::kPerToken, 1, others, KeptTensor::kQkv},
      {&A::qkv, "qkv", compute, Layout::kRows, config.qkv_width(), attention, KeptTensor::kQkv},
      {&A::lse, "lse", DType::kF32, Layout::kByHead, config.num_attention_heads, attention, KeptTensor::kAttention},
      {&A::attn, "attention", compute, Layout::kRows, config.q_width(), attention, KeptTensor::kAttention},
      {&A::mid, "mid", compute, Layout::kRows, config.hidden_size, others, KeptTensor::kMid},
      {&A::rstd2, "rstd2", DType::kF32, Layout::kPerToken, 1, others, KeptTensor::kGateUp},
      {&A::gate_up, "gate_up", compute, Layout::kRows, 2 * config.intermediate_size, others, KeptTensor::kGateUp},
      {&A::norm1, "norm1", compute, Layout::kRows, config.hidden_size, others, KeptTensor::kNorm1, &Activations::norm},
      {&A::norm2, "norm2", compute, Layout::kRows, config.hidden_size, others, KeptTensor::kNorm2, &Activations::norm},
      {&A::swiglu, "swiglu", compute, Layout::kRows, config.intermediate_size, others, KeptTensor::kSwiGlu}};
}

std::vector<ActivationPlan::Entry<Activations>> ActivationPlan::shared_table(const ModelConfig& config, DType compute,
                                                                             Keep keep) {
  using A = Activations;
  const bool backward = keep != Keep::kNothing;
  std::vector<Entry<A>> table = {{&A::last, "output", compute, Layout::kRows, config.hidden_size},
                                 {&A::rstd_final, "rstd_final", DType::kF32, Layout::kPerToken, 1},
                                 {&A::norm, "norm", compute, Layout::kRows, config.hidden_size},
                                 {&A::token_loss, "token_loss", DType::kF32, Layout::kPerToken, 1}};
  if (config.qk_norm) {
    if (backward) {
      table.push_back({&A::rotated, "rotated qkv", compute, Layout::kRows, config.qkv_width(), Reader::kAttention});
    }
    table.push_back(
        {&A::qk_rstd, "qk rstd", DType::kF32, Layout::kPerToken, config.num_attention_heads + config.kv_heads()});
  }
  if (backward) {
    table.push_back({&A::dx, "d residual", compute, Layout::kRows, config.hidden_size});
    table.push_back({&A::dqkv, "d qkv", compute, Layout::kRows, config.qkv_width()});
    table.push_back({&A::dattn, "d attention", compute, Layout::kRows, config.q_width(), Reader::kAttention});
  }
  return table;
}

// The layers [0, own_buffers) have a buffer of their own, the others share the next one. If all layers share the input,
// a layer's output overwrites it, when it is no longer needed.
int64_t ActivationPlan::own_buffers(const Entry<LayerActivations>& entry) const {
  if (entry.tensor != &LayerActivations::x) return kept_[entry.kept_as];
  return keep_ == Keep::kNothing ? 0 : last_layer_;
}

PerKeptTensor<bool> ActivationPlan::recomputed(int64_t l) const {
  PerKeptTensor<bool> again;
  for (const auto& entry : layer_table_) {
    if (entry.tensor == &LayerActivations::x) continue;
    const bool overwritten = entry.otherwise != nullptr || l < last_layer_;
    again[entry.kept_as] = kept_[entry.kept_as] <= l && overwritten;
  }
  return again;
}

PerKeptTensor<int64_t> ActivationPlan::bytes_of_layer(const ModelConfig& config, int64_t tokens, int64_t rows_behind,
                                                      DType compute) {
  PerKeptTensor<int64_t> bytes;
  for (const auto& entry : layer_table(config, compute)) {
    if (entry.tensor == &LayerActivations::x) continue;
    bytes[entry.kept_as] += committed_bytes(entry.dtype, entry.planned_shape(tokens, rows_behind));
  }
  return bytes;
}

ActivationPlan::ActivationPlan(const ModelConfig& config, int64_t tokens, int64_t rows_behind, DType compute, Keep keep,
                               const KeptLayers& kept, MemoryPlan& plan)
    : keep_(keep),
      last_layer_(most_kept_layers(config)),
      kept_(kept_of(keep, kept, last_layer_)),
      layer_table_(layer_table(config, compute)),
      shared_table_(shared_table(config, compute, keep)) {
  for (const int64_t layers : kept_.values) TOKAMAK_CHECK(0 <= layers && layers <= last_layer_, layers, " layers keep");
  const auto add = [&](const std::string& name, const auto& entry) {
    return Buffer{plan.add("activations/" + name, entry.dtype, entry.planned_shape(tokens, rows_behind)), {}};
  };
  for (int64_t l = 0; l < config.num_hidden_layers; ++l) {
    std::vector<Buffer> buffers;
    for (size_t i = 0; i < layer_table_.size(); ++i) {
      const auto& entry = layer_table_[i];
      const int64_t own = own_buffers(entry), owner = std::min(l, own);
      if (owner < l) {
        buffers.push_back(layers_[static_cast<size_t>(owner)][i]);
      } else if (l == own && entry.otherwise != nullptr) {
        buffers.emplace_back();
      } else {
        buffers.push_back(add(str("layer.", l, " ", entry.name), entry));
      }
    }
    layers_.push_back(std::move(buffers));
  }
  for (const auto& entry : shared_table_) shared_.push_back(add(entry.name, entry));
}

void ActivationPlan::commit(const Arena& arena) {
  for (std::vector<Buffer>& layer : layers_) {
    for (Buffer& buffer : layer) {
      if (buffer.slot) buffer.whole = arena[*buffer.slot];
    }
  }
  for (Buffer& buffer : shared_) buffer.whole = arena[*buffer.slot];
}

Activations ActivationPlan::first(int64_t tokens) const {
  const auto view = [tokens](const auto& entry, const Buffer& buffer) {
    const Shape shape = entry.shape(tokens);
    return buffer.whole.flat(0, shape.count()).reshape(shape);
  };
  Activations a;
  for (size_t i = 0; i < shared_.size(); ++i) a.*shared_table_[i].tensor = view(shared_table_[i], shared_[i]);
  for (const std::vector<Buffer>& layer : layers_) {
    LayerActivations& views = a.layers.emplace_back();
    for (size_t i = 0; i < layer.size(); ++i) {
      const auto& entry = layer_table_[i];
      views.*entry.tensor = layer[i].slot ? view(entry, layer[i]) : a.*entry.otherwise;
    }
  }
  return a;
}

}  // namespace tokamak
