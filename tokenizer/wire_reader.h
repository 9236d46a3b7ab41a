// Reads the fields of one protobuf message (https://protobuf.dev/programming-guides/encoding), in the order
// of the file. Every read is bounds-checked; damage is an Error(kData) that names file and byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tokamak {

class WireReader {
 public:
  // `source` names the file in errors; `offset` is the position of `message` in it.
  WireReader(std::string_view message, std::string source, int64_t offset = 0)
      : rest_(message), source_(std::move(source)), offset_(offset) {}

  // Moves to the next field; false at the end of the message. A field that no call below reads is skipped.
  bool next();
  int64_t field() const { return field_; }

  // The current field's value. Error(kData) if the field has another wire type.
  uint64_t varint();
  bool boolean() { return varint() != 0; }
  int32_t int32() { return static_cast<int32_t>(static_cast<uint32_t>(varint())); }
  float float32();
  std::string_view bytes();
  WireReader message();

 private:
  enum class Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  uint64_t read_varint();
  std::string_view take(uint64_t count);
  void expect(Wire wire) const;
  [[noreturn]] void damaged(const std::string& what) const;

  std::string_view rest_;
  std::string source_;
  int64_t offset_;  // of rest_ in the file
  int64_t field_ = 0;
  Wire wire_ = Wire::kVarint;
  uint64_t number_ = 0;       // value of a varint, or the bits of a fixed field
  std::string_view payload_;  // value of a bytes field
  int64_t payload_offset_ = 0;
};

}  // namespace tokamak
