// Makes foreign text (names from files, messages of peers, environment) safe to print. It then cannot move a terminal's
// cursor, forge a line of a log, or fill a screen.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tokamak {

// One line of at most `limit` characters, then "...". Line breaks and tabs become \n, \r or \t. Other control
// characters, invalid UTF-8 and direction marks become escapes such as \x1b or \u202e.
std::string printable(std::string_view foreign, size_t limit = 80);

// As printable(), but of any length and with line breaks; the log applies it to each message. Lines after the first
// begin with at least two spaces, so that they cannot pass for messages.
std::string printable_lines(std::string_view text);

}  // namespace tokamak
