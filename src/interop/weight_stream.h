// Streams f32 weights in pieces of a few MiB and converts them to the dtype of the output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "formats/flat_slice.h"
#include "formats/gguf.h"

namespace tokamak {

enum class WeightType { kF32, kF16, kBF16 };

// A dtype in each format, in the order of WeightType.
struct WeightFormat {
  const char* name;         // in safetensors
  const char* torch_dtype;  // in config.json
  GgufType gguf;
  uint32_t gguf_file_type;  // llama.cpp's number
  int64_t bytes;            // of one element
};
inline constexpr WeightFormat kWeightFormats[] = {{"F32", "float32", GgufType::kF32, 0, 4},
                                                  {"F16", "float16", GgufType::kF16, 1, 2},
                                                  {"BF16", "bfloat16", GgufType::kBF16, 32, 2}};
inline const WeightFormat& format_of(WeightType type) { return kWeightFormats[static_cast<size_t>(type)]; }

inline constexpr int64_t kElementsAtOnce = int64_t{1} << 20;  // 4 MiB of f32 in memory

// Called with the bytes done and the total; may throw to cancel.
using Progress = std::function<void(int64_t done, int64_t total)>;

// Maps rows of the output to rows of the source, for formats with another row order: row r is source row from(r).
using RowOrder = std::function<int64_t(int64_t row)>;

class WeightStream {
 public:
  using Sink = std::function<void(std::span<const std::byte>)>;

  // `total`: bytes that will be written, for `progress`.
  WeightStream(ReadParam read, Progress progress, int64_t total)
      : read_(std::move(read)), progress_(std::move(progress)), total_(total) {}

  // The whole weight, row-major. Error(kNumerics) if F16 cannot represent a value.
  void copy(const std::string& name, int64_t count, WeightType type, const Sink& sink);

  // Like copy(), but row r of the output is row from(r) of the weight.
  void copy_rows(const std::string& name, int64_t rows, int64_t columns, const RowOrder& from, WeightType type,
                 const Sink& sink);

 private:
  void copy_range(const std::string& name, int64_t first, int64_t count, WeightType type, const Sink& sink);

  ReadParam read_;
  Progress progress_;
  int64_t total_;
  int64_t done_ = 0;
  std::vector<float> values_;
  std::vector<std::byte> bytes_;
};

}  // namespace tokamak
