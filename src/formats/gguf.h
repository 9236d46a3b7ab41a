// Writes GGUF files, version 3, as llama.cpp reads them. Nothing here reads one.
//
//   file     := "GGUF" u32 version (3)  u64 tensors  u64 keys  key*  tensor*  zeros  data     all little-endian
//   key      := string name  u32 type  value        type: the index of the value's alternative in GgufValue
//   string   := u64 length  bytes
//   array    := u32 type  u64 count  value*
//   tensor   := string name  u32 dimensions  u64 extent*  u32 type  u64 offset     innermost extent first
//   data     := each tensor at its offset from the start of data, then zeros up to a multiple of 32 bytes
//
// Source: ggml, docs/gguf.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/file.h"

namespace tokamak {

inline constexpr int64_t kGgufAlignment = 32;
inline constexpr size_t kGgufLongestTensorName = 64;

// GgufArray and GgufValue have types in the order of GGUF's type numbers. Arrays of arrays are not supported.
using GgufArray = std::variant<std::vector<uint8_t>, std::vector<int8_t>, std::vector<uint16_t>, std::vector<int16_t>,
                               std::vector<uint32_t>, std::vector<int32_t>, std::vector<float>, std::vector<bool>,
                               std::vector<std::string>, std::monostate, std::vector<uint64_t>, std::vector<int64_t>,
                               std::vector<double>>;
using GgufValue = std::variant<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, float, bool, std::string,
                               GgufArray, uint64_t, int64_t, double>;
using GgufKeys = std::vector<std::pair<std::string, GgufValue>>;

enum class GgufType : uint32_t { kF32 = 0, kF16 = 1, kBF16 = 30 };

struct GgufTensor {
  std::string name;
  std::vector<int64_t> shape;  // outermost extent first, as in Shape
  GgufType type = GgufType::kF32;
  int64_t offset = 0;  // bytes from the start of data

  int64_t count() const;
  int64_t bytes() const;  // without padding
};

// The start of a file with these keys and tensors, up to its data; computes the offsets. A name that is too long or
// repeated is a bug.
std::string render_gguf_header(const GgufKeys& keys, std::vector<GgufTensor>& tensors);

class GgufWriter {
 public:
  GgufWriter(const std::string& path, const GgufKeys& keys, std::vector<GgufTensor> tensors, Kind kind);

  // The next bytes of the data, in tensor order, in pieces of any length that do not span two tensors. Adds padding.
  void write(std::span<const std::byte> bytes);
  int64_t finish();  // syncs and closes; all data must be written. Returns the size of the file

 private:
  void pad();

  OutputFile file_;
  std::vector<GgufTensor> tensors_;
  size_t current_ = 0;   // index of the tensor being written
  int64_t written_ = 0;  // its bytes written so far
};

}  // namespace tokamak
