// TensorBoard's event files, as bytes. A file is a sequence of records, each an Event, the first of them the version:
//   record   u64 length | u32 crc of the length | data | u32 crc of the data      CRC-32C, masked; little-endian
//   Event    1 wall_time: double | 2 step: int64 | one of 3 file_version: string, 5 summary: Summary, 7 session_log
//   Summary  1 value, repeated: 1 tag | 2 simple_value: float, or 5 histo: HistogramProto, or 8 tensor with 9 metadata
// in protobuf's wire format (protobuf.dev/programming-guides/encoding; the messages are TensorFlow's event.proto,
// summary.proto and tensor.proto, and plugin_data.proto of TensorBoard's hparams). protobuf itself is not linked,
// because SentencePiece brings symbols of another version.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/record.h"

namespace tokamak::tfevents {

uint32_t crc32c(std::string_view bytes);  // Castagnoli's polynomial: RFC 3720, B.4
std::string record(std::string_view data);

// Records. `wall_time` is in seconds since 1970.
std::string file_version(double wall_time);
// A SessionLog record. TensorBoard's Python reader drops earlier records from `step` on, but not at the first start.
std::string session_start(double wall_time, int64_t step);

// The values and texts of a step.
class Summary {
 public:
  void add_scalar(std::string_view tag, double value);  // kept as float
  // counts[i] is the number of values between first + i and first + i + 1. `counts` is not empty.
  void add_histogram(std::string_view tag, int64_t first, const std::vector<int64_t>& counts);
  void add_text(std::string_view tag, std::string_view markdown);
  // A row of the table HPARAMS; numbers, true and false keep their types. `begin`: seconds since 1970.
  void add_hparams(const std::vector<NamedText>& values, double begin);

  std::string record(double wall_time, int64_t step) const;

 private:
  std::string values_;
};

}  // namespace tokamak::tfevents
