// Sets of code points: what a class of a pattern is, before any engine sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tokamak {

// The borders of the set's ranges, ascending: the set begins and ends in turn. {0x41, 0x5B} is A to Z.
class CharSet {
 public:
  CharSet() = default;
  explicit CharSet(std::vector<uint32_t> borders) : borders_(std::move(borders)) {}
  static CharSet range(uint32_t first, uint32_t last);
  static CharSet one(uint32_t code) { return range(code, code); }

  const std::vector<uint32_t>& borders() const { return borders_; }
  bool contains(uint32_t code) const;
  bool empty() const { return borders_.empty(); }

  CharSet complement() const;  // in 0 to U+10FFFF
  CharSet operator|(const CharSet& other) const { return combine(other, 1); }
  CharSet operator&(const CharSet& other) const { return combine(other, 2); }
  bool operator==(const CharSet&) const = default;

 private:
  CharSet combine(const CharSet& other, int at_least) const;

  std::vector<uint32_t> borders_;
};

// The set of `\p{name}`: a general category of one or two letters or a script, in any case. Nothing for other names.
std::optional<CharSet> property_set(std::string_view name);

// The 25 characters of White_Space, which `\s` matches.
CharSet white_space_set();

}  // namespace tokamak
