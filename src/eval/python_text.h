// Python's str methods that lm-evaluation-harness uses. White space and letters are as Unicode defines them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tokamak {

// All of these take valid UTF-8.
std::string_view python_strip(std::string_view text);   // strips white space at both ends
std::string_view python_lstrip(std::string_view text);  // strips the left end
std::string_view python_rstrip(std::string_view text);  // strips the right end
int64_t python_len(std::string_view text);              // code points
// Number of pieces of re.split(r"\s+", text): one more than the runs of white space.
int64_t python_count_words(std::string_view text);
// The first letter in upper case, all others in lower case; maps one letter to one letter (no "SS" for sharp s).
std::string python_capitalize(std::string_view text);
std::string python_lower(std::string_view text);  // maps one letter to one letter
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

}  // namespace tokamak
