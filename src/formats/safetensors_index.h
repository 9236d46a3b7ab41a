// Sharded safetensors models, as Hugging Face writes them: which tensor is in which file.
//
//   model.safetensors                    one file, no index; else
//   model-00001-of-00003.safetensors     counted from 1, and
//   model.safetensors.index.json         {"metadata": {"total_size": BYTES}, "weight_map": {TENSOR: FILE, ...}}
//
// Works on text; does no file I/O.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/safetensors_header.h"

namespace tokamak {

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kModelIndex = "model.safetensors.index.json";

struct ModelShard {
  std::string file;
  std::vector<SafetensorsEntry> tensors;  // in the order of their data
};

// huggingface_hub's rule: tensors in the given order fill a file until the next would exceed `largest_bytes`; a tensor
// larger than that has a separate file. Within a file the order is the reference writer's.
std::vector<ModelShard> split_into_shards(const std::vector<SafetensorsEntry>& tensors, int64_t largest_bytes);

std::string render_index(const std::vector<ModelShard>& shards);

// Tensor -> file. Error(kind) naming `path` if it is not an index, or names a file that is not a plain *.safetensors.
std::map<std::string, std::string, std::less<>> parse_index(std::string_view text, const std::string& path, Kind kind);

}  // namespace tokamak
