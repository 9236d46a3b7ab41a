// Reads the characters, escapes and classes of a regular expression, as Oniguruma's Ruby syntax has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tokenizer/scan/char_set.h"

namespace tokamak {

constexpr int kMaxPatternDepth = 100;  // of groups, and of classes

// The set with the other cases of its ASCII letters: Oniguruma's simple case folding, over all of Unicode.
CharSet folded(const CharSet& set);

// folded() is all that (?i) does to the set. Other characters fold by tables that we do not have.
bool folds_simply(const CharSet& set);

class PatternReader {
 protected:
  explicit PatternReader(std::string_view pattern) : pattern_(pattern) {}

  bool at_end() const { return at_ == pattern_.size(); }
  bool sees(std::string_view text) const { return pattern_.substr(at_, text.size()) == text; }
  bool take(std::string_view text);
  uint32_t take_char();
  [[noreturn]] void refuse(std::string_view construct) const;  // Error(kData)

  // The set of `\s`, `\p{..}` and the like. Nothing, and nothing is read, for an escape of one character.
  std::optional<CharSet> escaped_set();
  uint32_t escaped_char();
  // After the [: the set, up to and with the ].
  CharSet bracket(bool ignore_case, int depth);

  std::string_view pattern_;
  size_t at_ = 0;

 private:
  uint32_t valid(uint32_t code) const;
  uint32_t hex_digits(int count);
  uint32_t hex_until(std::string_view end, size_t most);
  CharSet class_item_folded();
  CharSet class_item();
};

}  // namespace tokamak
