#include "model/activation_names.h"

#include <algorithm>

#include "base/strings.h"
#include "model/layer_table.h"

namespace tokamak {

std::string activation_name(int64_t layer, const char* name) { return str("layers.", layer, ".", name); }

std::vector<std::string> activation_names(const ModelConfig& config) {
  const LayerTable layers(config);
  std::vector<std::string> names = {activation::kEmbedding};
  for (int64_t l = 0; l < layers.layers(); ++l) {
    for (const auto& part : layers.kind(l).parts) {
      for (const WatchedRow& row : part->watched()) names.push_back(activation_name(l, row.name));
    }
    names.push_back(activation_name(l, activation::kOutput));
  }
  names.insert(names.end(), {activation::kNorm, activation::kLogits});
  return names;
}

std::vector<std::string> matching_activations(const ModelConfig& config, const std::vector<std::string>& patterns) {
  std::vector<std::string> names = activation_names(config);
  std::erase_if(names, [&](const std::string& name) {
    return std::none_of(patterns.begin(), patterns.end(),
                        [&](const std::string& pattern) { return fits_pattern(pattern, name); });
  });
  return names;
}

}  // namespace tokamak
