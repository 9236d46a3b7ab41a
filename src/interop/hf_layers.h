// Differences between the layers of a model, in config.json: windows, and layers without rotary embeddings.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "interop/config_reader.h"
#include "interop/hf_architecture.h"

namespace tokamak {

// Fills sliding_window, layer_types and no_rope_layers. Refuses what the architecture cannot mean.
void read_layers(ConfigReader& config, const HfArchitecture& architecture, ModelConfig& model);

// Adds the keys of these fields, also where they have their defaults.
void render_layers(const ModelConfig& model, const HfArchitecture& architecture, nlohmann::ordered_json& json);

}  // namespace tokamak
