// User-defined symbols: pieces that are matched before anything else, longest first, and never merge with adjacent
// symbols.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/model_proto.h"

namespace tokamak {

class UserSymbols {
 public:
  explicit UserSymbols(const std::vector<Piece>& pieces);

  struct Match {
    int32_t id = -1;  // -1: no symbol begins here
    int64_t length = 0;
    size_t begin = 0;  // in the text that was searched
  };
  // The longest symbol that `text` (not empty, normalised) begins with.
  Match match(std::string_view text) const {
    return first_byte_[static_cast<unsigned char>(text[0])] ? longest(text) : Match{};
  }
  // The first symbol in `text`, which is normalised; the longest of those that begin there.
  Match find(std::string_view text) const;
  bool have_spaces() const;  // whether a space or U+2581 is in one of them

 private:
  struct Symbol {
    std::string text;
    int32_t id;
    int64_t shorter = -1;  // index of the longest other symbol that this one begins with; -1: none
  };
  Match longest(std::string_view text) const;

  std::vector<Symbol> symbols_;  // sorted by text, as unsigned bytes
  std::array<bool, 256> first_byte_{};
};

}  // namespace tokamak
