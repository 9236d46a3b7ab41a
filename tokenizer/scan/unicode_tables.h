// The general category of each code point in Unicode 16.0, which Hugging Face's and tiktoken's engines use, and the
// scripts that patterns name. scripts/dev/unicode_tables.py makes the data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tokamak {

constexpr uint32_t kCodePoints = 0x110000;

enum class Category : uint8_t {
  kLu,
  kLl,
  kLt,
  kLm,
  kLo,  // letters
  kMn,
  kMc,
  kMe,  // marks
  kNd,
  kNl,
  kNo,  // numbers
  kPc,
  kPd,
  kPs,
  kPe,
  kPi,
  kPf,
  kPo,  // punctuation
  kSm,
  kSc,
  kSk,
  kSo,  // symbols
  kZs,
  kZl,
  kZp,  // separators
  kCc,
  kCf,
  kCo,
  kCn,
  kCs,  // controls, formats, private use, unassigned, surrogates
};
constexpr int kCategories = 30;

// The two-letter names, in the order of Category.
extern const std::string_view kCategoryNames[kCategories];

// Maximal runs of code points of one category, ascending: first code point << 5 | Category.
std::span<const uint32_t> category_runs();

// The borders of a script's ranges: the set begins and ends in turn. Empty for a name that we have not. Names are in
// lower case.
std::span<const uint32_t> script_borders(std::string_view name);

}  // namespace tokamak
