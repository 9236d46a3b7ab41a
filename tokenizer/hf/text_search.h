// Cuts a text at the matches of a pattern, and says which pieces are matches.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/hf/spec.h"
#include "tokenizer/scan/char_set.h"

namespace tokamak {

struct FoundPiece {
  size_t begin = 0;
  size_t end = 0;
  bool is_match = false;  // else it is a gap between two matches
};

// Immutable and shared by threads.
class TextSearch {
 public:
  virtual ~TextSearch() = default;
  // Appends matches and gaps, which cover `text` (valid UTF-8) in order.
  virtual void cut(std::string_view text, std::vector<FoundPiece>& pieces) const = 0;
};

// Error(kData), naming the pattern, for a regular expression that cannot be reproduced.
std::unique_ptr<TextSearch> make_text_search(const SearchPattern& pattern);

enum class SetMatches { kCharacters, kRuns };
std::unique_ptr<TextSearch> make_set_search(CharSet set, SetMatches matches);

}  // namespace tokamak
