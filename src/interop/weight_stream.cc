#include "interop/weight_stream.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/bf16.h"
#include "base/error.h"
#include "base/f16.h"

namespace tokamak {

namespace {

template <class Bits, class Convert>
void convert(std::span<const float> values, std::vector<std::byte>& bytes, const Convert& one) {
  bytes.resize(values.size() * sizeof(Bits));
  for (size_t i = 0; i < values.size(); ++i) {
    const Bits bits = one(values[i]);
    std::memcpy(bytes.data() + i * sizeof(Bits), &bits, sizeof(Bits));
  }
}

uint16_t half_of(float value, const std::string& name) {
  const uint16_t bits = f16_bits(value);
  if (std::isfinite(value) && (bits & 0x7FFFu) == 0x7C00u) {
    fail(Kind::kNumerics, str("weight '", name, "' has the value ", value, ", and F16 ends at 65504"),
         "export as bf16 or f32");
  }
  return bits;
}

}  // namespace

void WeightStream::copy_range(const std::string& name, int64_t first, int64_t count, WeightType type,
                              const Sink& sink) {
  for (int64_t at = first; at < first + count;) {
    const int64_t length = std::min(kElementsAtOnce, first + count - at);
    values_.resize(length);
    read_(name, at, values_);
    at += length;
    switch (type) {
      case WeightType::kF32:
        sink(std::as_bytes(std::span(values_)));
        break;
      case WeightType::kF16:
        convert<uint16_t>(values_, bytes_, [&](float value) { return half_of(value, name); });
        sink(bytes_);
        break;
      case WeightType::kBF16:
        convert<uint16_t>(values_, bytes_, [](float value) { return bf16(value).bits; });
        sink(bytes_);
        break;
    }
    done_ += length * format_of(type).bytes;
    if (progress_) progress_(done_, total_);
  }
}

void WeightStream::copy(const std::string& name, int64_t count, WeightType type, const Sink& sink) {
  copy_range(name, 0, count, type, sink);
}

void WeightStream::copy_rows(const std::string& name, int64_t rows, int64_t columns, const RowOrder& from,
                             WeightType type, const Sink& sink) {
  for (int64_t row = 0; row < rows; ++row) copy_range(name, from(row) * columns, columns, type, sink);
}

}  // namespace tokamak
