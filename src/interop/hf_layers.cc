#include "interop/hf_layers.h"

#include <nlohmann/json.hpp>

#include "base/strings.h"

namespace tokamak {

namespace {

constexpr int64_t kDefaultWindow = 4096;  // of every class that has windows

// The shortest list that gives `list` if it is repeated.
template <class T>
std::vector<T> shortest_period(std::vector<T> list) {
  for (size_t period = 1; period < list.size(); ++period) {
    if (!std::equal(list.begin() + static_cast<std::ptrdiff_t>(period), list.end(), list.begin())) continue;
    list.resize(period);
    break;
  }
  return list;
}

// An absent key means the default, null no window.
int64_t read_window(const JsonValue& window) {
  if (window.is_missing()) return kDefaultWindow;
  return window.present() ? window.whole(1) : 0;
}

// (L); empty: the file has no list.
std::vector<LayerType> read_types(const JsonValue& list, int64_t layers) {
  std::vector<LayerType> types;
  if (!list.present()) return types;
  const std::vector<std::string>& names = enum_names(LayerType());
  for (const JsonValue& item : list.items()) {
    const auto found = std::find(names.begin(), names.end(), item.text());
    if (found == names.end()) item.refuse("supported are " + join(names, ", "));
    types.push_back(static_cast<LayerType>(found - names.begin()));
  }
  if (std::ssize(types) != layers) list.refuse(str("there are ", layers, " layers"));
  return types;
}

void read_windows(ConfigReader& config, const HfArchitecture& architecture, ModelConfig& model) {
  const JsonValue window = config["sliding_window"], list = config["layer_types"];
  const std::vector<LayerType> types = read_types(list, model.num_hidden_layers);
  const auto expect_all = [&](LayerType type) {
    for (const LayerType given : types)
      if (given != type) list.refuse(str(architecture.name, " has ", enum_name(type), " in all layers of this file"));
  };
  switch (architecture.windows) {
    case HfWindows::kNone: {
      expect_all(LayerType::kFull);
      // The class ignores the key, so that its model is another than the file's author may think.
      const bool hides =
          !architecture.no_rope_layers && window.present() && window.whole() < model.max_position_embeddings;
      if (hides) window.refuse(str(architecture.name, " has no windows"));
      return;
    }
    case HfWindows::kAllLayers:
      model.sliding_window = read_window(window);
      expect_all(model.sliding_window > 0 ? LayerType::kSliding : LayerType::kFull);
      return;
    case HfWindows::kLayerTypes: {
      const JsonValue pattern = config["sliding_window_pattern"];  // of old Gemma files
      const int64_t every = pattern.whole_or(architecture.full_every);
      model.sliding_window = read_window(window);
      if (model.sliding_window == 0) return expect_all(LayerType::kFull);
      std::vector<LayerType> absent;
      for (int64_t l = 0; l < model.num_hidden_layers && every > 0; ++l)
        absent.push_back((l + 1) % every != 0 ? LayerType::kSliding : LayerType::kFull);
      model.layer_types = shortest_period(types.empty() ? absent : types);
      break;
    }
    case HfWindows::kLastLayers: {
      const int64_t first = config["max_window_layers"].whole_or(28);
      if (config["use_sliding_window"].truth_or(false)) model.sliding_window = read_window(window);
      if (model.sliding_window == 0) return expect_all(LayerType::kFull);
      std::vector<LayerType> last(static_cast<size_t>(model.num_hidden_layers), LayerType::kFull);
      for (int64_t l = first; l < model.num_hidden_layers; ++l) last[l] = LayerType::kSliding;
      model.layer_types = shortest_period(types.empty() ? last : types);
      break;
    }
  }
  if (model.layer_types == std::vector{LayerType::kSliding}) model.layer_types.clear();  // as the window alone says
  if (model.layer_types == std::vector{LayerType::kFull}) model.layer_types.clear(), model.sliding_window = 0;
}

// 1: with rotary embeddings. An absent list has none in every `interval`-th layer.
void read_no_rope_layers(ConfigReader& config, ModelConfig& model) {
  const JsonValue list = config["no_rope_layers"];
  const int64_t interval = config["no_rope_layer_interval"].whole_or(4);
  std::vector<int64_t> rotates;
  if (list.present()) {
    rotates = list.counts();
    if (std::ssize(rotates) != model.num_hidden_layers)
      list.refuse(str("there are ", model.num_hidden_layers, " layers"));
  } else {
    if (interval < 1) config["no_rope_layer_interval"].refuse("it must be at least 1");
    for (int64_t l = 0; l < model.num_hidden_layers; ++l) rotates.push_back((l + 1) % interval != 0 ? 1 : 0);
  }
  model.no_rope_layers = shortest_period(std::move(rotates));
  if (model.no_rope_layers == std::vector<int64_t>{1}) model.no_rope_layers.clear();
  const JsonValue windows = config["use_sliding_window"];
  if (windows.truth_or(false)) windows.refuse("windows beside no_rope_layers are not supported");
}

}  // namespace

void read_layers(ConfigReader& config, const HfArchitecture& architecture, ModelConfig& model) {
  read_windows(config, architecture, model);
  if (architecture.no_rope_layers) read_no_rope_layers(config, model);
}

void render_layers(const ModelConfig& model, const HfArchitecture& architecture, nlohmann::ordered_json& json) {
  std::vector<std::string> types;
  std::vector<int64_t> rotates;
  bool slides = false;
  for (int64_t l = 0; l < model.num_hidden_layers; ++l) {
    slides |= model.slides(l);
    types.push_back(enum_name(model.slides(l) ? LayerType::kSliding : LayerType::kFull));
    rotates.push_back(model.rotates(l) ? 1 : 0);
  }
  const nlohmann::ordered_json window = slides ? nlohmann::ordered_json(model.sliding_window) : nullptr;
  switch (architecture.windows) {
    case HfWindows::kNone:
      break;
    case HfWindows::kAllLayers:
      json["sliding_window"] = window;
      break;
    case HfWindows::kLayerTypes:
      json["sliding_window"] = window;
      json["layer_types"] = types;
      break;
    case HfWindows::kLastLayers:
      json["use_sliding_window"] = slides;
      if (!slides) break;
      json["sliding_window"] = window;
      json["max_window_layers"] = 0;
      json["layer_types"] = types;
      break;
  }
  if (architecture.no_rope_layers) {
    json["no_rope_layers"] = rotates;
    json["use_sliding_window"] = false;
    json["sliding_window"] = nullptr;
  }
}

}  // namespace tokamak
