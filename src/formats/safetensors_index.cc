#include "formats/safetensors_index.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "formats/json.h"

namespace tokamak {

namespace {

std::string shard_name(size_t index, size_t count) {
  std::array<char, 64> buffer;
  std::snprintf(buffer.data(), buffer.size(), "model-%05zu-of-%05zu.safetensors", index + 1, count);
  return buffer.data();
}

// Bytes of a tensor whose offsets are not known yet.
int64_t bytes_of(const SafetensorsEntry& tensor) {
  std::vector<SafetensorsEntry> alone = {tensor};
  render_safetensors_header(alone, {});
  return alone[0].bytes();
}

}  // namespace

std::vector<ModelShard> split_into_shards(const std::vector<SafetensorsEntry>& tensors, int64_t largest_bytes) {
  std::vector<ModelShard> shards(1);
  int64_t filled = 0;
  for (const SafetensorsEntry& tensor : tensors) {
    const int64_t bytes = bytes_of(tensor);
    if (filled + bytes > largest_bytes && !shards.back().tensors.empty()) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().tensors.push_back(tensor);
    filled += bytes;
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    shards[i].file = shards.size() == 1 ? kModelFile : shard_name(i, shards.size());
    sort_as_reference(shards[i].tensors);
    render_safetensors_header(shards[i].tensors, {});  // assigns their offsets
  }
  return shards;
}

std::string render_index(const std::vector<ModelShard>& shards) {
  int64_t total = 0;
  nlohmann::json map = nlohmann::json::object();  // sorted by name
  for (const ModelShard& shard : shards) {
    for (const SafetensorsEntry& tensor : shard.tensors) {
      map[tensor.name] = shard.file;
      total += tensor.bytes();
    }
  }
  const nlohmann::ordered_json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
  return index.dump(2) + "\n";
}

std::map<std::string, std::string, std::less<>> parse_index(std::string_view text, const std::string& path, Kind kind) {
  const JsonDocument index(text, {path, kind});
  const JsonValue map = index["weight_map"];
  std::map<std::string, std::string, std::less<>> files;
  for (const std::string& tensor : map.keys()) {
    const std::string name = map[tensor].text();
    constexpr std::string_view kEnding = ".safetensors";
    const bool plain = is_file_name(name) && name.size() > kEnding.size() && name.ends_with(kEnding) && name[0] != '.';
    if (!plain) map[tensor].refuse("expected a .safetensors file beside it");
    files.emplace(tensor, name);
  }
  return files;
}

}  // namespace tokamak
