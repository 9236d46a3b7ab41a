// The layers of a model as one table: the kinds of layers, the parts of each kind, and the tensors that a layer may
// keep for backward.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/model_config.h"
#include "model/part.h"

namespace tokamak {

extern const LayerKind kDecoderLayer;  // full attention with rotary embeddings, SwiGLU

// A KeptRow of one kind. The last layer of the kind never has a buffer of its own for it (KeptLayers says why).
struct KeptTensor {
  std::string name;  // "qkv"; "KIND.qkv" in a model of several kinds
  KeptRow row;
  int64_t most = 0;  // layers that may keep it
};

class LayerTable {
 public:
  struct Kind {
    const char* name;
    std::vector<std::unique_ptr<const Part>> parts;
    std::vector<std::vector<size_t>> kept;  // [part][KeptRow::id]: index into LayerTable::kept()
    std::vector<int64_t> layers;            // indices of this kind's layers, ascending

    size_t kept_index(size_t part, int id) const { return kept[part][id]; }
  };
  explicit LayerTable(const ModelConfig& config);

  int64_t layers() const { return std::ssize(kind_); }
  const std::vector<Kind>& kinds() const { return kinds_; }
  const Kind& kind(int64_t l) const { return kinds_[kind_[l]]; }
  // The tensors that layers may keep, in the order of KeptLayers. Those that spare a forward operation come first.
  const std::vector<KeptTensor>& kept() const { return kept_; }

 private:
  void list_kept();

  std::vector<Kind> kinds_;
  std::vector<size_t> kind_;  // per layer
  std::vector<KeptTensor> kept_;
};

// The kind of each layer: config.pattern, or else attention and SwiGLU, with the window and the rotary embeddings that
// the config's lists say.                                                                                      (L)
std::vector<const LayerKind*> layer_kinds(const ModelConfig& config);
std::vector<const LayerKind*> distinct_kinds(const ModelConfig& config);  // each once, in the order of the layers

}  // namespace tokamak
