// The pre-tokenizer of a trained byte-level BPE: the pattern of a family, with its own digits or others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tokenizer/scan/scanner.h"

namespace tokamak {

enum class Digits { kOfPattern, kSingle, kUpToThree };
inline const std::vector<std::string>& enum_names(Digits) {
  static const std::vector<std::string> names = {"pattern", "single", "up-to-three"};
  return names;
}

struct BytesPattern {
  std::vector<std::string> scanned;  // regular expressions that cut, one after another, as the file's pre-tokenizer
  std::vector<std::string> splits;   // of the file's `Split`s before `ByteLevel`; none: `ByteLevel` has GPT-2's pattern
  Digits digits_first = Digits::kOfPattern;  // numbers that are split off before GPT-2's pattern
  bool whole_pieces = false;                 // `ignore_merges`, as the family's files have it
};

// Error(kConfig) for an unknown family, or digits that its pattern cannot have.
BytesPattern bytes_pattern(const std::string& family, Digits digits);

std::unique_ptr<Scanner> make_scanner(const BytesPattern& pattern);

}  // namespace tokamak
