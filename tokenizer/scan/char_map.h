// One byte for each code point: two-level tables of what a scanner must learn about a character.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace tokamak {

class CharMap {
 public:
  // `runs`: first code point << 8 | value, ascending, beginning with code point 0.
  explicit CharMap(std::span<const uint32_t> runs);

  uint8_t operator[](uint32_t code) const { return blocks_[blocks_at_[code >> 7]][code & 127]; }

 private:
  using Block = std::array<uint8_t, 128>;
  std::array<uint16_t, 0x110000 / 128> blocks_at_{};
  std::vector<Block> blocks_;
};

}  // namespace tokamak
