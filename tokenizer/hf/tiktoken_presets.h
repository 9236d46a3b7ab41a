// Patterns and special tokens, which .tiktoken files do not hold, of the vocabularies published in this format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tokamak {

struct TiktokenPreset {
  std::string_view pattern;                                     // a regular expression
  bool nfc = false;                                             // its own tokenizer normalizes text first
  int64_t first_special = -1;                                   // id of offset 0; -1: the number behind the last rank
  std::vector<std::pair<std::string, int64_t>> special_tokens;  // content, offset
  std::string bos, eos;                                         // "": none
};

// Error(kData), naming `path`, for an unknown name.
TiktokenPreset tiktoken_preset(const std::string& name, const std::string& path);

}  // namespace tokamak
