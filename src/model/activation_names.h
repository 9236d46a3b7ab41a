// The names of the activations that ActivationStatistics can measure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/model_config.h"

namespace tokamak {

namespace activation {
inline constexpr const char *kEmbedding = "embedding", *kOutput = "output", *kNorm = "norm", *kLogits = "logits";
}

// The names of all activations that a model shows, in forward's order: "embedding", "layers.0.attention",
// "layers.0.attention_logits", "layers.0.mlp", "layers.0.output", ..., "norm", "logits".
std::vector<std::string> activation_names(const ModelConfig& config);
// Those that one of the patterns matches (fnmatch), in the same order.
std::vector<std::string> matching_activations(const ModelConfig& config, const std::vector<std::string>& patterns);
std::string activation_name(int64_t layer, const char* name);  // "layers.3.attention"

}  // namespace tokamak
