// The properties of characters that the scanners written by hand use: one byte of flags for each code point.
#pragma once

#include <cstdint>

#include "tokenizer/scan/char_map.h"

namespace tokamak {

enum CharFlag : uint8_t {
  kLetter = 1,        // \p{L}
  kNumber = 2,        // \p{N}
  kSpaceFlag = 4,     // \s
  kNewline = 8,       // CR and LF, which are kSpaceFlag too
  kUpperClass = 16,   // Lu, Lt, Lm, Lo, M: the first class of a word of o200k
  kLowerClass = 32,   // Ll, Lm, Lo, M: the second
  kPunctuation = 64,  // \p{P} and \p{S}
  kCjk = 128,         // the ranges of DeepSeek V3's second split
};
constexpr uint8_t kBothClasses = kUpperClass | kLowerClass;

// By Unicode 16.0.
const CharMap& char_classes();
// The same, but kNumber is what the pre-tokenizer Digits takes for a digit.
const CharMap& char_classes_of_digits();

inline bool is_mark(unsigned flags) { return (flags & (kBothClasses | kLetter)) == kBothClasses; }
inline bool is_other(unsigned flags) { return (flags & (kLetter | kNumber | kSpaceFlag)) == 0; }

}  // namespace tokamak
