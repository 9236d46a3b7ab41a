#include "model/layer_table.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"
#include "model/attention_part.h"
#include "model/mlp_part.h"
#include "model/recompute.h"

namespace tokamak {

constinit const LayerKind kDecoderLayer = {"decoder", [](const ModelConfig& config) {
                                             std::vector<std::unique_ptr<const Part>> parts;
                                             parts.push_back(std::make_unique<AttentionPart>(config));
                                             parts.push_back(std::make_unique<MlpPart>(config));
                                             return parts;
                                           }};

std::vector<const LayerKind*> distinct_kinds(const ModelConfig& config) {
  std::vector<const LayerKind*> kinds;
  for (const LayerKind* kind : config.pattern) {
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  return kinds;
}

LayerTable::LayerTable(const ModelConfig& config) {
  const std::vector<const LayerKind*> distinct = distinct_kinds(config);
  for (const LayerKind* kind : distinct) kinds_.push_back({kind->name, kind->make_parts(config), {}, {}});
  for (int64_t l = 0; l < config.num_hidden_layers; ++l) {
    const LayerKind* kind = config.pattern[static_cast<size_t>(l) % config.pattern.size()];
    kind_.push_back(static_cast<size_t>(std::find(distinct.begin(), distinct.end(), kind) - distinct.begin()));
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
        kind.kept[p].resize(rows.size());
        for (const KeptRow& row : rows) {
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
