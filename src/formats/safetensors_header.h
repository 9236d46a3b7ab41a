// The header of a safetensors file and its validation. Works on text; does no file I/O.
//
//   file    := N header data
//   N       := u64, little-endian: bytes of the header, at most 100,000,000
//   header  := {"__metadata__": {KEY: TEXT, ...}, NAME: tensor, ...} spaces     UTF-8 JSON whose first byte is '{'
//   tensor  := {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}  offsets in data; [] is a scalar
//   data    := the tensors, row-major, little-endian, without holes, overlaps or trailing bytes
//
// The rules are those of the reference reader (huggingface/safetensors, tensor.rs); in addition keys must be unique,
// and unknown keys of a tensor are refused.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tokamak {

inline constexpr int64_t kSafetensorsLengthBytes = 8;
inline constexpr int64_t kSafetensorsLargestHeader = 100'000'000;

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // as in the file: "F32", "BF16", "F8_E4M3"
  std::vector<int64_t> shape;
  int64_t begin = 0;  // bytes, from the start of data
  int64_t end = 0;

  int64_t bytes() const { return end - begin; }
  int64_t count() const;  // elements
};

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsHeader {
  SafetensorsMetadata metadata;
  std::vector<SafetensorsEntry> tensors;  // in the order of their data
  int64_t data_begin = 0;                 // in the file
};

// `length` is N as read; fails if it cannot be the header length of a file of `file_bytes`.
void check_safetensors_length(uint64_t length, int64_t file_bytes, const std::string& path, Kind kind);

// `text` is the header without N. Error(kind) naming `path` and the tensor if a rule is broken.
SafetensorsHeader parse_safetensors_header(std::string_view text, int64_t file_bytes, const std::string& path,
                                           Kind kind);

// The start of a file with these tensors: N and the header, padded to 8 bytes; computes begin and end. Tensors must be
// aligned to their element size, dtypes known and names unique.
std::string render_safetensors_header(std::vector<SafetensorsEntry>& tensors, const SafetensorsMetadata& metadata);

// The reference writer's order, in which every tensor is aligned: widest dtype first, then by name.
void sort_as_reference(std::vector<SafetensorsEntry>& tensors);

}  // namespace tokamak
