// The pieces of a text, by a scanner with a buffer of any size.
#pragma once

#include <string>
#include <vector>

#include "tokenizer/scan/scanner.h"

namespace tokamak {

inline std::vector<uint32_t> ends_of(const Scanner& scanner, std::string_view text, size_t buffer = 256) {
  std::vector<uint32_t> ends(buffer), all;
  size_t at = 0;
  while (const size_t count = scanner.scan(text, at, ends)) {
    all.insert(all.end(), ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(count));
    at = all.back();
  }
  return all;
}

inline std::vector<std::string> pieces_of(const Scanner& scanner, std::string_view text, size_t buffer = 256) {
  std::vector<std::string> pieces;
  size_t at = 0;
  for (const uint32_t end : ends_of(scanner, text, buffer)) {
    pieces.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

}  // namespace tokamak
