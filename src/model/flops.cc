#include "model/flops.h"

#include <algorithm>

#include "base/error.h"
#include "model/parameters.h"

namespace tokamak {

ModelSize model_size(const ModelConfig& config) {
  const ParamTable table = make_param_table(config);
  ModelSize size;
  size.parameters = table.count();
  size.lookup_parameters = config.tie_word_embeddings ? 0 : config.vocab_size * config.hidden_size;
  return size;
}

double flops_per_token_full(const ModelConfig& config, int64_t sequence_length) {
  return token_flops(config).done(static_cast<double>(sequence_length));
}

double flops_per_token_causal(const ModelConfig& config, int64_t sequence_length) {
  return token_flops(config).done(0.5 * static_cast<double>(sequence_length));
}

TokenFlops token_flops(const ModelConfig& config) {
  const ModelSize size = model_size(config);
  return {.weights = 6.0 * static_cast<double>(size.parameters - size.lookup_parameters),
          .per_attended = 3 * static_cast<double>(config.num_hidden_layers) * layer_flops(config).per_attended};
}

LayerFlops layer_flops(const ModelConfig& config) {
  const ParamTable table = make_param_table(config);
  const Unit& layer = table.units[static_cast<size_t>(WeightIndex(table).layer(0))];  // with all its matrices
  const auto gemm = [&](const std::string& name) {
    const auto found = std::find_if(layer.matrices.begin(), layer.matrices.end(),
                                    [&](const Matrix& matrix) { return matrix.name == name; });
    TOKAMAK_CHECK(found != layer.matrices.end(), layer.name, " has no ", name);
    return 2 * static_cast<double>(found->count());
  };
  return {.qkv = gemm("qkv"),
          .o = gemm("o"),
          .gate_up = gemm("gate_up"),
          .down = gemm("down"),
          .per_attended = 4 * static_cast<double>(config.q_width())};
}

}  // namespace tokamak
