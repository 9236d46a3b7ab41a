#include "model/layer_table.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"
#include "model/attention_part.h"
#include "model/mlp_part.h"
#include "model/recompute.h"

namespace tokamak {

namespace {

template <LayerType kType, Positions kPositions>
constexpr LayerKind decoder_layer(const char* name) {
  return {name, [](const ModelConfig& config) {
            std::vector<std::unique_ptr<const Part>> parts;
            parts.push_back(std::make_unique<AttentionPart>(config, LayerAttention{kType, kPositions}));
            parts.push_back(std::make_unique<MlpPart>(config));
            return parts;
          }};
}

constexpr LayerKind kSliding = decoder_layer<LayerType::kSliding, Positions::kRotary>("sliding"),
                    kFullNoRope = decoder_layer<LayerType::kFull, Positions::kNone>("full, no rope"),
                    kSlidingLocal = decoder_layer<LayerType::kSliding, Positions::kLocalRotary>("sliding, local rope"),
                    kSlidingNoRope = decoder_layer<LayerType::kSliding, Positions::kNone>("sliding, no rope");

}  // namespace

constinit const LayerKind kDecoderLayer = decoder_layer<LayerType::kFull, Positions::kRotary>("full");

std::vector<const LayerKind*> layer_kinds(const ModelConfig& config) {
  std::vector<const LayerKind*> kinds;
  for (int64_t l = 0; l < config.num_hidden_layers; ++l) {
    if (!config.pattern.empty()) {
      kinds.push_back(config.pattern[static_cast<size_t>(l) % config.pattern.size()]);
    } else if (!config.rotates(l)) {
      kinds.push_back(config.slides(l) ? &kSlidingNoRope : &kFullNoRope);
    } else if (config.slides(l)) {
      kinds.push_back(config.rope_local_base_freq > 0 ? &kSlidingLocal : &kSliding);
    } else {
      kinds.push_back(&kDecoderLayer);
    }
  }
  return kinds;
}

std::vector<const LayerKind*> distinct_kinds(const ModelConfig& config) {
  std::vector<const LayerKind*> kinds;
  for (const LayerKind* kind : layer_kinds(config)) {
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  return kinds;
}

LayerTable::LayerTable(const ModelConfig& config) {
  const std::vector<const LayerKind*> distinct = distinct_kinds(config), kinds = layer_kinds(config);
  for (const LayerKind* kind : distinct) kinds_.push_back({kind->name, kind->make_parts(config), {}, {}});
  for (int64_t l = 0; l < config.num_hidden_layers; ++l) {
    kind_.push_back(static_cast<size_t>(std::find(distinct.begin(), distinct.end(), kinds[l]) - distinct.begin()));
    kinds_[kind_.back()].layers.push_back(l);
  }
  list_kept();
  TOKAMAK_CHECK(kept_.size() <= kMostKeptTensors, kept_.size(), " tensors may be kept");
}

void LayerTable::list_kept() {
  for (const KeptRow::Spares spares : {KeptRow::Spares::kForward, KeptRow::Spares::kStore}) {
    for (Kind& kind : kinds_) {
      kind.kept.resize(kind.parts.size());
      for (size_t p = 0; p < kind.parts.size(); ++p) {
        const std::vector<KeptRow> rows = kind.parts[p]->kept();
        for (const KeptRow& row : rows) {
          kind.kept[p].resize(std::max(kind.kept[p].size(), static_cast<size_t>(row.id) + 1));
          if (row.spares != spares) continue;
          kind.kept[p].at(row.id) = kept_.size();
          const std::string name = kinds_.size() == 1 ? row.name : str(kind.name, ".", row.name);
          kept_.push_back({name, row, std::max<int64_t>(std::ssize(kind.layers) - 1, 0)});
        }
      }
    }
  }
}

}  // namespace tokamak
