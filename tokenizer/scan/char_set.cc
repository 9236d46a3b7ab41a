#include "tokenizer/scan/char_set.h"

#include <algorithm>
#include <string>

#include "tokenizer/scan/unicode_tables.h"

namespace tokamak {

CharSet CharSet::range(uint32_t first, uint32_t last) {
  if (last < first) return CharSet();
  return CharSet({first, last + 1});
}

bool CharSet::contains(uint32_t code) const {
  return (std::upper_bound(borders_.begin(), borders_.end(), code) - borders_.begin()) % 2 == 1;
}

CharSet CharSet::complement() const {
  std::vector<uint32_t> borders;
  if (borders_.empty() || borders_.front() != 0) borders.push_back(0);
  borders.insert(borders.end(), borders_.begin() + (borders.empty() ? 1 : 0), borders_.end());
  if (borders.back() == kCodePoints)
    borders.pop_back();
  else
    borders.push_back(kCodePoints);
  return CharSet(std::move(borders));
}

// A sweep over both lists of borders: the result is where at least `at_least` of the two sets are.
CharSet CharSet::combine(const CharSet& other, int at_least) const {
  std::vector<uint32_t> result;
  size_t i = 0, j = 0;
  bool inside = false;
  while (i < borders_.size() || j < other.borders_.size()) {
    const uint32_t a = i < borders_.size() ? borders_[i] : UINT32_MAX;
    const uint32_t b = j < other.borders_.size() ? other.borders_[j] : UINT32_MAX;
    const uint32_t at = std::min(a, b);
    i += a == at;
    j += b == at;
    const bool now = static_cast<int>(i % 2) + static_cast<int>(j % 2) >= at_least;
    if (now != inside) result.push_back(at);
    inside = now;
  }
  return CharSet(std::move(result));
}

std::optional<CharSet> property_set(std::string_view name) {
  std::string lower(name);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (const auto borders = script_borders(lower); !borders.empty()) return CharSet({borders.begin(), borders.end()});
  if (lower.empty() || lower.size() > 2) return std::nullopt;
  bool known = false;
  bool wanted[kCategories] = {};
  for (int c = 0; c < kCategories; ++c) {
    const std::string_view category = kCategoryNames[c];
    wanted[c] = lower[0] == category[0] - 'A' + 'a' && (lower.size() == 1 || lower[1] == category[1]);
    known |= wanted[c];
  }
  if (!known) return std::nullopt;
  std::vector<uint32_t> borders;
  for (const uint32_t run : category_runs())
    if (wanted[run & 31] != (borders.size() % 2 == 1)) borders.push_back(run >> 5);
  if (borders.size() % 2 == 1) borders.push_back(kCodePoints);
  return CharSet(std::move(borders));
}

CharSet white_space_set() {
  CharSet set = CharSet::range(0x09, 0x0D) | CharSet::one(0x85);
  for (const char* name : {"Zs", "Zl", "Zp"}) set = set | *property_set(name);
  return set;
}

}  // namespace tokamak
