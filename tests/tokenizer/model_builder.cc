#include "model_builder.h"

#include <bit>

#include "base/file.h"

namespace tokamak {

std::string wire_varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string wire_number(int64_t field, int64_t value) {
  return wire_varint(static_cast<uint64_t>(field) << 3) + wire_varint(static_cast<uint64_t>(value));
}

std::string wire_float(int64_t field, float value) {
  std::string bytes = wire_varint(static_cast<uint64_t>(field) << 3 | 5);
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(bits >> (8 * i));
  return bytes;
}

std::string wire_bytes(int64_t field, std::string_view payload) {
  return wire_varint(static_cast<uint64_t>(field) << 3 | 2) + wire_varint(payload.size()) + std::string(payload);
}

ModelBuilder& ModelBuilder::add_bytes() {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  byte_fallback = true;
  for (size_t b = 0; b < 256; ++b) {
    add(std::string("<0x") + kDigits[b / 16] + kDigits[b % 16] + ">", 0, PieceType::kByte);
  }
  return *this;
}

std::string ModelBuilder::pieces_part() const {
  std::string bytes;
  for (const Piece& piece : pieces) {
    bytes += wire_bytes(
        1, wire_bytes(1, piece.text) + wire_float(2, piece.score) + wire_number(3, static_cast<int64_t>(piece.type)));
  }
  return bytes;
}

std::string ModelBuilder::trainer_part() const {
  return wire_bytes(2, wire_number(3, model_type) + wire_number(24, treat_whitespace_as_suffix ? 1 : 0) +
                           wire_number(35, byte_fallback ? 1 : 0) + more_trainer_fields);
}

std::string ModelBuilder::normalizer_part() const {
  std::string bytes = wire_bytes(1, "identity") + wire_bytes(2, charsmap) + wire_number(3, add_dummy_prefix ? 1 : 0) +
                      wire_number(4, remove_extra_whitespaces ? 1 : 0) + wire_number(5, escape_whitespaces ? 1 : 0);
  bytes = wire_bytes(3, bytes);
  if (!denormalizer_charsmap.empty()) bytes += wire_bytes(5, wire_bytes(2, denormalizer_charsmap));
  return bytes;
}

std::string ModelBuilder::build() const { return pieces_part() + trainer_part() + normalizer_part(); }

std::string ModelBuilder::write(const std::string& path) const { return write_quickly(path, build()); }

std::string write_quickly(const std::string& path, std::string_view bytes) {
  OutputFile file(path, Kind::kData);
  file.write(bytes);
  file.close();
  return path;
}

}  // namespace tokamak
