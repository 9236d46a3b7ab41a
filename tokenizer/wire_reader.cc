#include "tokenizer/wire_reader.h"

#include <bit>
#include <cstring>

#include "base/error.h"

namespace tokamak {

void WireReader::damaged(const std::string& what) const {
  fail(Kind::kData, str(source_, " is not a SentencePiece model, or damaged: ", what, " at byte ", offset_),
       "give the tokenizer.model file itself, and compare its size and checksum with the original");
}

uint64_t WireReader::read_varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1)[0]);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  damaged("a number of more than 10 bytes");
}

std::string_view WireReader::take(uint64_t count) {
  if (count > rest_.size()) damaged(str("needs ", count, " bytes where ", rest_.size(), " are left"));
  const std::string_view taken = rest_.substr(0, static_cast<size_t>(count));
  rest_.remove_prefix(taken.size());
  offset_ += std::ssize(taken);
  return taken;
}

bool WireReader::next() {
  if (rest_.empty()) return false;
  const uint64_t tag = read_varint();
  field_ = static_cast<int64_t>(tag >> 3);
  if (field_ < 1 || field_ > (1 << 29) - 1) damaged(str("field number ", field_));
  switch (tag & 7) {
    case 0:
      wire_ = Wire::kVarint;
      number_ = read_varint();
      break;
    case 1:
      wire_ = Wire::kFixed64;
      take(8);
      break;
    case 2: {
      wire_ = Wire::kBytes;
      const uint64_t length = read_varint();
      payload_offset_ = offset_;
      payload_ = take(length);
      break;
    }
    case 5: {
      wire_ = Wire::kFixed32;
      const std::string_view raw = take(4);
      number_ = 0;
      for (size_t i = 0; i < 4; ++i) number_ |= uint64_t{static_cast<unsigned char>(raw[i])} << (8 * i);
      break;
    }
    default:
      damaged(str("wire type ", tag & 7, " of field ", field_));
  }
  return true;
}

void WireReader::expect(Wire wire) const {
  if (wire_ != wire) {
    damaged(str("field ", field_, " has wire type ", static_cast<int>(wire_), " instead of ", static_cast<int>(wire)));
  }
}

uint64_t WireReader::varint() {
  expect(Wire::kVarint);
  return number_;
}

float WireReader::float32() {
  expect(Wire::kFixed32);
  return std::bit_cast<float>(static_cast<uint32_t>(number_));
}

std::string_view WireReader::bytes() {
  expect(Wire::kBytes);
  return payload_;
}

WireReader WireReader::message() {
  expect(Wire::kBytes);
  return {payload_, source_, payload_offset_};
}

}  // namespace tokamak
