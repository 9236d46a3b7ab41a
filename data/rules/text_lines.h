// Lines and white space as Python has them: str.splitlines, str.strip. Text is valid UTF-8.
#pragma once

#include <cstdint>
#include <string_view>

namespace tokamak {

std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);
inline std::string_view strip(std::string_view text) { return strip_left(strip_right(text)); }

int64_t count_chars(std::string_view text);  // code points

// LF, CR, CR LF, VT, FF, FS, GS, RS, NEL, LS or PS.
struct LineEnd {
  size_t at;    // where it begins; the text's size if there is none
  size_t size;  // bytes
};
LineEnd next_line_end(std::string_view text, size_t at);  // the first from `at` on

// Calls take(line) for each line, without its end. Text that ends in a line end has no empty last line.
template <class Take>
void for_each_line(std::string_view text, const Take& take) {
  for (size_t begin = 0; begin < text.size();) {
    const LineEnd end = next_line_end(text, begin);
    take(text.substr(begin, end.at - begin));
    begin = end.at + end.size;
  }
}

// Calls take(part) for the parts between separators of at least `least` LF; as re.split("\n{least,}", text).
template <class Take>
void for_each_part(std::string_view text, size_t least, const Take& take) {
  size_t begin = 0;
  for (size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at)) {
    size_t end = at;
    while (end < text.size() && text[end] == '\n') ++end;
    if (end - at >= least) {
      take(text.substr(begin, at - begin));
      begin = end;
    }
    at = end;
  }
  take(text.substr(begin));
}

}  // namespace tokamak
