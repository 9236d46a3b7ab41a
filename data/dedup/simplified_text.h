// Text -> the words that deduplication compares: in lower case, without punctuation and accents, each number as 0. So
// copies that differ in these alone are equal. As simplify_text of datatrove (utils/text.py).
#pragma once

#include <string>
#include <string_view>

namespace tokamak {

// Replaces `out` by the simplified form of `text` (valid UTF-8): words with one space between two.
void simplify_text(std::string_view text, std::string& out);

}  // namespace tokamak
