#include "data/rules/web_address.h"

#include <algorithm>

#include "base/utf8.h"
#include "data/rules/word_classes.h"

namespace tokamak {

namespace {

constexpr int kLongestLabel = 64;  // characters
constexpr int kLongestTopLabel = 63;

bool is_label_end(char32_t c) {
  const bool ascii = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return ascii || (c >= 0xA1 && c <= 0xFFFF);
}

bool is_scheme(std::string_view text) {
  const auto fits = [](char c) {
    return is_label_end(static_cast<unsigned char>(c)) || c == '+' || c == '-' || c == '.' || c == '_';
  };
  return text.size() >= 2 && std::all_of(text.begin(), text.end(), fits);
}

// [:PORT][/ or ? or # and anything]
bool is_port_and_path(std::string_view text) {
  if (text.starts_with(':')) {
    size_t digits = 0;
    while (1 + digits < text.size() && text[1 + digits] >= '0' && text[1 + digits] <= '9') ++digits;
    if (digits < 2 || digits > 5) return false;
    text.remove_prefix(1 + digits);
  }
  return text.empty() || text[0] == '/' || text[0] == '?' || text[0] == '#';
}

// Labels with a dot between two, the last one of lower-case letters, then port and path.
bool is_host(std::string_view text) {
  int labels = 0, chars = 0;  // of this label
  bool good_end = false, all_lower = true;
  while (!text.empty()) {
    const Utf8Char c = decode_valid_utf8(text.data());
    if (c.code == '.') {
      if (!good_end || chars > kLongestLabel) return false;
      ++labels, chars = 0, good_end = false, all_lower = true;
    } else if (is_label_end(c.code) || ((c.code == '-' || c.code == '_') && chars > 0)) {
      ++chars, good_end = is_label_end(c.code);
      all_lower = all_lower && (word_classes()[c.code] & kLowerLetter) != 0;
    } else {
      break;
    }
    text.remove_prefix(static_cast<size_t>(c.length));
  }
  return labels > 0 && chars >= 2 && chars <= kLongestTopLabel && all_lower && is_port_and_path(text);
}

}  // namespace

bool is_web_address(std::string_view word) {
  if (word.find('.') == std::string_view::npos) return false;
  const size_t scheme = word.find("://");
  if (scheme != std::string_view::npos && is_scheme(word.substr(0, scheme)) && is_host(word.substr(scheme + 3)))
    return true;
  if (is_host(word)) return true;
  for (size_t at = word.find('@', 1); at != std::string_view::npos; at = word.find('@', at + 1))
    if (is_host(word.substr(at + 1))) return true;
  return false;
}

}  // namespace tokamak
