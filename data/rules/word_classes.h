// The properties of characters by which words are split and text is judged: one byte of flags for each code point.
#pragma once

#include <cstdint>

#include "tokenizer/scan/char_map.h"

namespace tokamak {

enum WordClass : uint8_t {
  kMark = 1,          // punctuation that is a word of its own at either end of a word; quotation marks are among them
  kQuote = 2,         // quotation marks
  kIcon = 4,          // \p{So}
  kFront = 8,         // a word of its own at the front of a word only: % = and currencies
  kLowerLetter = 16,  // \p{Ll}, and letters without case
  kUpperLetter = 32,  // \p{Lu}, and letters without case
  kSpaceChar = 64,    // as Python's str.isspace
  kSymbolChar = 128,  // a word of these alone is no word for Gopher's counts: datatrove's PUNCTUATION_SET
};

const CharMap& word_classes();

inline bool is_letter(unsigned classes) { return (classes & (kLowerLetter | kUpperLetter)) != 0; }

}  // namespace tokamak
