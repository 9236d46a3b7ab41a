#include "model/layer_table.h"

#include <algorithm>
#include <cstring>

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

std::vector<LayerKind> distinct_kinds(const ModelConfig& config) {
  std::vector<LayerKind> kinds;
  for (const LayerKind& kind : config.pattern) {
    const auto same = [&](const LayerKind& other) { return std::strcmp(other.name, kind.name) == 0; };
    if (std::none_of(kinds.begin(), kinds.end(), same)) kinds.push_back(kind);
  }
  return kinds;
}

LayerTable::LayerTable(const ModelConfig& config) {
  for (const LayerKind& kind : distinct_kinds(config)) kinds_.push_back({kind.name, kind.make_parts(config), {}, {}});
  for (int64_t l = 0; l < config.num_hidden_layers; ++l) {
    const char* name = config.pattern[static_cast<size_t>(l) % config.pattern.size()].name;
    const auto kind =
        std::find_if(kinds_.begin(), kinds_.end(), [&](const Kind& one) { return std::strcmp(one.name, name) == 0; });
    kind->layers.push_back(l);
    kind_.push_back(static_cast<size_t>(kind - kinds_.begin()));
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
          kind.kept[p].at(static_cast<size_t>(row.at)) = kept_.size();
          const std::string name = kinds_.size() == 1 ? row.name : str(kind.name, ".", row.name);
          kept_.push_back({name, row, std::max<int64_t>(std::ssize(kind.layers) - 1, 0)});
        }
      }
    }
  }
}

}  // namespace tokamak
