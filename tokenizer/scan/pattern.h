// Regular expressions as Hugging Face's engine (Oniguruma) matches them, run by PCRE2.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

namespace tokamak {

struct PatternMatch {
  size_t begin, end;  // bytes of the text
};

// Immutable and shared by threads.
class Pattern {
 public:
  // Error(kData), naming the construct, for what would not be matched as Oniguruma does.
  explicit Pattern(std::string_view pattern);
  ~Pattern();

  bool can_be_empty() const;  // it can match the empty string

  struct Compiled;

 private:
  friend class PatternSearch;
  std::unique_ptr<const Compiled> compiled_;
};

// Finds the matches in a text, one after another. The text is valid UTF-8 of less than 4 GiB; the pattern and the text
// must outlive the search.
class PatternSearch {
 public:
  // Begins at byte `at`, where a match may have ended. ^ and lookbehinds see the text before `at`.
  PatternSearch(const Pattern& pattern, std::string_view text, size_t at = 0);
  ~PatternSearch();

  // The next match, which may be empty, but not at the end of the one before (or at `at`). Error(kData) if it takes too
  // many steps.
  std::optional<PatternMatch> next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tokamak
