#include "model/flops.h"

#include "model/layer_table.h"
#include "model/parameters.h"

namespace tokamak {

ModelSize model_size(const ModelConfig& config) {
  const ParamTable table = make_param_table(config);
  ModelSize size;
  size.parameters = table.count();
  size.lookup_parameters = config.tie_word_embeddings ? 0 : config.vocab_size * config.hidden_size;
  return size;
}

TokenFlops token_flops(const ModelConfig& config) {
  const ModelSize size = model_size(config);
  TokenFlops flops{.weights = 6.0 * double(size.parameters - size.lookup_parameters)};
  const LayerTable layers(config);
  for (int64_t l = 0; l < layers.layers(); ++l) {
    for (const auto& part : layers.kind(l).parts) flops.per_attended += 3 * part->flops_per_attended();
  }
  return flops;
}

}  // namespace tokamak
