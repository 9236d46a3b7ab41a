#include "tokenizer/bpe/cut_rule.h"

#include <algorithm>

namespace tokamak {

namespace {

bool continues(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

// Of the character that begins with `first`; 0 if none does.
size_t length_of_character(char first) {
  const auto byte = static_cast<uint8_t>(first);
  if (byte < 0x80) return 1;
  if (byte < 0xC2 || byte > 0xF4) return 0;
  return byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

size_t bit_of_bytes(char left, char right) {
  return static_cast<size_t>(static_cast<uint8_t>(left)) << 8 | static_cast<uint8_t>(right);
}

void set_bit(std::vector<uint64_t>& bits, uint64_t bit) { bits[bit / 64] |= uint64_t{1} << bit % 64; }

}  // namespace

CutRule::CutRule()
    : pairs_((size_t{1} << kBits) / 64), partly_((size_t{1} << kBits) / 64), partly_bytes_((size_t{1} << 16) / 64) {}

void CutRule::add(std::string_view piece) {
  for (size_t cut = 1; cut < piece.size(); ++cut) {
    if (continues(piece[cut])) continue;
    size_t begin = cut - 1;
    while (begin > 0 && continues(piece[begin])) --begin;
    size_t end = cut + 1;
    while (end < piece.size() && continues(piece[end])) ++end;
    if (cut - begin > 4 || end - cut > 4) continue;  // in no valid text
    const uint64_t bit = bit_of(packed(&piece[begin], cut - begin), packed(&piece[cut], end - cut));
    const bool whole = !continues(piece[begin]) && end - cut >= length_of_character(piece[cut]);
    set_bit(whole ? pairs_ : partly_, bit);
    if (!whole) set_bit(partly_bytes_, bit_of_bytes(piece[cut - 1], piece[cut]));
  }
}

size_t CutRule::first_part(std::string_view text) const {
  size_t previous = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t length = length_of_character(text[at]);
    if (length == 0 || length > text.size() - at) return text.size();
    for (size_t i = 1; i < length; ++i) {
      if (!continues(text[at + i])) return text.size();
    }
    if (at > 0 && !may_join(&text[at - previous], previous, &text[at], length)) return at;
    previous = length;
    at += length;
  }
  return text.size();
}

inline bool CutRule::may_join(const char* left, size_t left_length, const char* right, size_t right_length) const {
  if (is_set(pairs_, bit_of(packed(left, left_length), packed(right, right_length)))) return true;
  if (!is_set(partly_bytes_, bit_of_bytes(left[left_length - 1], right[0]))) return false;
  return may_join_partly(left, left_length, right, right_length);
}

bool CutRule::may_join_partly(const char* left, size_t left_length, const char* right, size_t right_length) const {
  for (size_t skipped = 0; skipped < left_length; ++skipped) {
    const uint32_t suffix = packed(left + skipped, left_length - skipped);
    for (size_t taken = 1; taken <= right_length; ++taken) {
      if (is_set(partly_, bit_of(suffix, packed(right, taken)))) return true;
    }
  }
  return false;
}

}  // namespace tokamak
