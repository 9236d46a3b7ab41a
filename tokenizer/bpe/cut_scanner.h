// Cuts text between two characters that no piece has side by side. No merge spans such a cut, so it never changes the
// ids. Words come out where a vocabulary respects spaces, and single characters of Chinese.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/scan/scanner.h"

namespace tokamak {

class CutScanner final : public Scanner {
 public:
  // `pieces`: valid UTF-8; the results of all merges are among them. More pieces only cost cuts.
  explicit CutScanner(std::span<const std::string_view> pieces);

  size_t scan(std::string_view text, size_t at, std::span<uint32_t> ends) const override;

 private:
  struct Masks {
    uint64_t cut, check;
  };
  Masks masks_of(const char* before, size_t size) const;
  bool may_join(const char* at) const;
  uint64_t bit_of(uint64_t characters) const { return characters * 0x9E3779B97F4A7C15u >> shift_; }

  // Whether to cut, by the byte before and the byte behind, which is the upper one of the index.
  std::vector<uint8_t> borders_;
  // A set bit says that a piece may contain the pair of characters. Different pairs may share a bit, which only costs a
  // cut. Looked up where the second character has three or four bytes.
  std::vector<uint64_t> pairs_;
  int shift_ = 0;
};

}  // namespace tokamak
