// Reads a regular expression as Oniguruma does (Hugging Face's engine), and writes it for PCRE2 over classes of
// characters instead of characters. The sets of a pattern cut Unicode into at most 256 classes; one byte is one class.
// So no property, no case folding and no UTF-8 is left to PCRE2, whose Unicode version does not matter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

struct ClassPattern {
  std::string regex;           // for PCRE2 without UTF; a subject has one byte, the class, for each character
  std::vector<uint32_t> runs;  // maximal runs of code points of one class, ascending: first code point << 8 | class
  bool can_be_empty = false;   // it can match the empty string

  // Equal patterns match the same; different ones may.
  bool operator==(const ClassPattern&) const = default;
};

// Error(kData), naming the construct and its offset, for what Oniguruma and we would match differently, for what it
// refuses, and for patterns of more than 64 KiB.
ClassPattern parse_pattern(std::string_view pattern);

}  // namespace tokamak
