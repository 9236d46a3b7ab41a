#include "serve/page.h"

#include <span>
#include <string_view>

#include "base/digest.h"
#include "base/strings.h"
#include "serve/page_text.h"

namespace tokamak {

namespace {

// Standard base64 of bytes that are given in hexadecimal.
std::string base64_of_hex(std::string_view hex) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < hex.size(); at += 6) {
    const std::string_view part = hex.substr(at, 6);
    const auto bits = std::stoul((std::string(part) + "000000").substr(0, 6), nullptr, 16);
    for (size_t i = 0; i < 4; ++i) text += i <= part.size() / 2 ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

// 'sha256-...' of the element's text; 'none' if the page has no such element.
std::string source_of(std::string_view page, const std::string& element) {
  const std::string opens = "<" + element + ">";
  const size_t begin = page.find(opens), end = page.find("</" + element + ">");
  if (begin == std::string_view::npos || end == std::string_view::npos) return "'none'";
  const std::string_view text = page.substr(begin + opens.size(), end - begin - opens.size());
  const auto digest = make_digest("sha256");
  digest->update(std::as_bytes(std::span(text)));
  return str("'sha256-", base64_of_hex(digest->hex()), "'");
}

}  // namespace

std::string page_html() { return std::string(page_text::html()); }

std::vector<std::pair<std::string, std::string>> page_headers() {
  const std::string_view page = page_text::html();
  return {{"Content-Security-Policy",
           str("default-src 'none'; script-src ", source_of(page, "script"), "; style-src ", source_of(page, "style"),
               "; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")},
          {"Cache-Control", "no-cache"}};
}

}  // namespace tokamak
