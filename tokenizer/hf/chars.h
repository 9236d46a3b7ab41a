// Properties of characters, as Rust's `char` and `regex` have them, on which added tokens and pre-tokenizers depend.
#pragma once

#include <cstddef>
#include <string_view>

#include "tokenizer/scan/char_set.h"

namespace tokamak {

bool is_white_space(char32_t c);  // White_Space: 25 characters
// The length of the white space at the end or the start of `text` (valid UTF-8), in bytes.
size_t white_space_at_end(std::string_view text);
size_t white_space_at_start(std::string_view text);
std::string_view last_character(std::string_view text);  // of valid UTF-8 that is not empty

CharSet word_set();         // \w: Alphabetic, M, Nd, Pc, Join_Control
CharSet punctuation_set();  // P, and ASCII's punctuation

}  // namespace tokamak
