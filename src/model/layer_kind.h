// The kind of a layer: its parts, made for a config.
#pragma once

#include <memory>
#include <vector>

namespace tokamak {

class Part;
struct ModelConfig;

struct LayerKind {
  const char* name;
  std::vector<std::unique_ptr<const Part>> (*make_parts)(const ModelConfig& config);  // in the order of forward
};

extern const LayerKind kDecoderLayer;  // attention, SwiGLU (layer_table.cc)

}  // namespace tokamak
