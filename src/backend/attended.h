// How many tokens attention sees: those of the same document up to the token itself, or the last `window` of them.
#pragma once

#include <cstdint>

namespace tokamak {

// The mean over the tokens of a document of `length` tokens. Each sees itself, too. `window` 0: none.
inline double mean_attended(int64_t length, int64_t window) {
  if (length <= 0) return 0;
  const auto most = double(window > 0 && window < length ? window : length);
  return most - most * (most - 1) / (2 * double(length));
}

// The window of a call whose documents have at most `longest` tokens: 0 if it hides nothing.
inline int64_t effective_window(int64_t window, int64_t longest) { return window < longest ? window : 0; }

}  // namespace tokamak
