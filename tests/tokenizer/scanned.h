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

// The pieces by the patterns of a family, run by PCRE2. Each pattern cuts the pieces of the one before.
class ReferenceScanner {
 public:
  explicit ReferenceScanner(std::span<const std::string_view> patterns) {
    for (const std::string_view pattern : patterns) scanners_.push_back(make_pattern_scanner(pattern));
  }

  std::vector<uint32_t> ends(std::string_view text) const {
    std::vector<uint32_t> ends = ends_of(*scanners_[0], text);
    for (size_t i = 1; i < scanners_.size(); ++i) {
      std::vector<uint32_t> finer;
      uint32_t at = 0;
      for (const uint32_t end : ends) {
        for (const uint32_t inner : ends_of(*scanners_[i], text.substr(at, end - at))) finer.push_back(at + inner);
        at = end;
      }
      ends = std::move(finer);
    }
    return ends;
  }

 private:
  std::vector<std::unique_ptr<Scanner>> scanners_;
};

}  // namespace tokamak
