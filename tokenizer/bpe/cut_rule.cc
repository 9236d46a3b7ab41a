#include "tokenizer/bpe/cut_rule.h"

#include <algorithm>

namespace tokamak {

namespace {

// By the length of a character: its bytes, and which bits show that all but the first continue it.
struct CharacterShape {
  uint32_t bytes, marks, marked;
};
// No character begins with a byte of length 0, so its marks never fit.
constexpr CharacterShape kShapes[5] = {{0xFF, 0, 1},
                                       {0xFF, 0, 0},
                                       {0xFFFF, 0xC000, 0x8000},
                                       {0xFFFFFF, 0xC0C000, 0x808000},
                                       {0xFFFFFFFF, 0xC0C0C000, 0x80808000}};

// The length of the character that begins with `first`; 0 if that byte continues one.
size_t length_of_character(uint32_t first) { return 0x4322000011111111u >> (first >> 4) * 4 & 15; }

bool continues(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

uint64_t bit_of_bytes(uint32_t left, uint32_t right) { return uint64_t{left} << 8 | right; }

void set_bit(std::vector<uint64_t>& bits, uint64_t bit) { bits[bit / 64] |= uint64_t{1} << bit % 64; }

}  // namespace

CutRule::CutRule()
    : pairs_((size_t{1} << kBits) / 64), partly_((size_t{1} << kBits) / 64), partly_bytes_((size_t{1} << 16) / 64) {}

void CutRule::add(std::string_view piece) {
  for (size_t cut = 1; cut < piece.size(); ++cut) {
    if (continues(piece[cut])) continue;
    if (const uint32_t left = static_cast<uint8_t>(piece[cut - 1]), right = static_cast<uint8_t>(piece[cut]);
        (left | right) < 0x80) {  // most are ASCII
      set_bit(pairs_, bit_of(left, right));
      continue;
    }
    size_t begin = cut - 1;
    while (begin > 0 && continues(piece[begin])) --begin;
    if (cut - begin > 4) continue;  // a character has at most 4 bytes
    const auto first = static_cast<uint8_t>(piece[cut]);
    const size_t length = length_of_character(first);
    const std::string_view right = piece.substr(cut, length);
    const bool whole = !continues(piece[begin]) && right.size() == length;
    set_bit(whole ? pairs_ : partly_, bit_of(packed(piece.substr(begin, cut - begin)), packed(right)));
    if (!whole) set_bit(partly_bytes_, bit_of_bytes(static_cast<uint8_t>(piece[cut - 1]), first));
  }
}

// A byte that belongs to no character joins its neighbours. No branch depends on a cut, since cuts are frequent and
// hard to predict.
size_t CutRule::cut(std::string_view text, std::span<uint32_t> ends) const {
  if (text.size() < 4) return ends[0] = static_cast<uint32_t>(text.size()), 1;
  size_t count = 0;
  uint32_t left = 0;
  uint32_t left_last = 0;  // last byte
  bool left_valid = false;
  for (size_t at = 0; at < text.size();) {
    const size_t load = std::min(at, text.size() - 4);  // no byte behind the text is read
    const uint32_t bytes = packed({text.data() + load, 4}) >> 8 * (at - load);
    const size_t length = length_of_character(bytes & 0xFF);
    const CharacterShape& shape = kShapes[length];
    const bool valid = (bytes & shape.marks) == shape.marked;
    const uint32_t right = bytes & shape.bytes;
    bool joins = !(valid && left_valid) || is_set(pairs_, bit_of(left, right));
    if (is_set(partly_bytes_, bit_of_bytes(left_last, right & 0xFF))) joins = joins || may_join_partly(left, right);
    ends[count] = static_cast<uint32_t>(at);
    count += joins ? 0 : 1;
    if (count + 1 == ends.size()) return count;
    const size_t step = valid ? length : 1;
    left = right;
    left_last = bytes >> 8 * (step - 1) & 0xFF;
    left_valid = valid;
    at += step;
  }
  ends[count] = static_cast<uint32_t>(text.size());
  return count + 1;
}

bool CutRule::may_join_partly(uint32_t left, uint32_t right) const {
  do {
    for (uint32_t taken = 0xFF;; taken = taken << 8 | 0xFF) {
      if (is_set(partly_, bit_of(left, right & taken))) return true;
      if ((right & ~taken) == 0) break;
    }
    left >>= 8;
  } while (left != 0);
  return false;
}

}  // namespace tokamak
