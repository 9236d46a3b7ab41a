// Reads a config.json and records which keys were read.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json.h"

namespace tokamak {

class ConfigReader {
 public:
  explicit ConfigReader(const JsonDocument& json) : json_(json) {}

  JsonValue operator[](const std::string& key) {
    seen_.push_back(key);
    return json_[key];
  }

  // Present keys that were not read, but for those `without_effect`.
  std::vector<std::string> unused(std::span<const std::string_view> without_effect) const {
    std::vector<std::string> keys;
    for (const std::string& key : json_.root().keys()) {
      const bool known = std::find(seen_.begin(), seen_.end(), key) != seen_.end() ||
                         std::find(without_effect.begin(), without_effect.end(), key) != without_effect.end();
      if (!known && json_[key].present()) keys.push_back(key);
    }
    return keys;
  }

 private:
  const JsonDocument& json_;
  std::vector<std::string> seen_;
};

}  // namespace tokamak
