#include "model/flops.h"

#include <algorithm>

#include "model/parameters.h"

namespace tokamak {

ModelSize model_size(const ModelConfig& config) {
  const ParamTable table = make_param_table(config);
  ModelSize size;
  size.parameters = table.count();
  size.lookup_parameters = config.tie_word_embeddings ? 0 : config.vocab_size * config.hidden_size;
  return size;
}

Attended::Attended(const LayerTable& layers) {
  for (int64_t l = 0; l < layers.layers(); ++l) {
    for (const auto& part : layers.kind(l).parts) {
      const AttentionFlops flops = part->attention_flops();
      if (flops.per_pair == 0) continue;
      flops_per_pair_ += flops.per_pair;
      const auto same = std::find_if(layers_.begin(), layers_.end(),
                                     [&](const AttentionFlops& known) { return known.window == flops.window; });
      if (same == layers_.end())
        layers_.push_back(flops);
      else
        same->per_pair += flops.per_pair;
    }
  }
}

template <class Count>
double Attended::mean(const Count& count) const {
  if (layers_.size() == 1) return count(layers_.front().window);
  double sum = 0;
  for (const AttentionFlops& layers : layers_) sum += layers.per_pair / flops_per_pair_ * count(layers.window);
  return sum;
}

double Attended::in_documents(std::span<const int32_t> cu_seqlens) const {
  return mean([&](int64_t window) {
    double pairs = 0;
    for (size_t i = 0; i + 1 < cu_seqlens.size(); ++i) {
      const int64_t length = cu_seqlens[i + 1] - cu_seqlens[i];
      pairs += double(length) * mean_attended(length, window);
    }
    return pairs / double(cu_seqlens.back());
  });
}

double Attended::in_sequences(int64_t T) const {
  return mean([&](int64_t window) { return mean_attended(T, window); });
}

double Attended::full(double T) const {
  return mean([&](int64_t window) { return window > 0 ? std::min(T, double(window)) : T; });
}

double Attended::causal(double T) const {
  return mean([&](int64_t window) {
    const auto w = double(window);
    return window > 0 && w < T ? w - w * w / (2 * T) : 0.5 * T;
  });
}

TokenFlops token_flops(const ModelConfig& config) {
  const ModelSize size = model_size(config);
  const Attended attended{LayerTable(config)};
  return {.weights = 6.0 * double(size.parameters - size.lookup_parameters),
          .per_attended = 3 * attended.flops_per_pair(),
          .attended = attended};
}

}  // namespace tokamak
