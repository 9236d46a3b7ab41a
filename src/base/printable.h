// Foreign text (names from files, words of peers, environment) as text that is safe to print: nothing in it can move a
// terminal's cursor, forge a line of a log, or fill a screen.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tokamak {

// One line of at most `limit` characters, then "...". Line breaks become \n, \r or \t; other control characters, invalid
// UTF-8, and what changes the direction of writing become \x1b or \u202e.
std::string printable(std::string_view foreign, size_t limit = 80);

// Any length, and the line breaks stay: what the log does to each message. A line after the first begins with two spaces
// at least, so that it cannot pass for a message.
std::string printable_lines(std::string_view text);

}  // namespace tokamak
