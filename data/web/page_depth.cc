#include "data/web/page_depth.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include "data/web/headers.h"

namespace tokamak {

namespace {

// Without content, or with an end that HTML supplies.
constexpr std::string_view kUncounted[] = {
    "area",   "base",  "basefont", "bgsound", "body", "br",    "col", "colgroup", "dd",     "dt",
    "embed",  "frame", "head",     "hr",      "html", "image", "img", "input",    "keygen", "li",
    "link",   "meta",  "optgroup", "option",  "p",    "param", "rb",  "rp",       "rt",     "rtc",
    "source", "tbody", "td",       "tfoot",   "th",   "thead", "tr",  "track",    "wbr"};

constexpr size_t kMostNames = 4096;  // of elements; a page that invents more of them costs no more memory

bool begins_with(std::string_view text, std::string_view lower_case) {
  return text.size() >= lower_case.size() && equal_in_any_case(text.substr(0, lower_case.size()), lower_case);
}

// The end of the comment at the front of `text`, "<!--".
size_t comment_end(std::string_view text) {
  for (const std::string_view empty : {"<!-->", "<!--->"})
    if (text.starts_with(empty)) return empty.size();
  for (size_t at = text.find("--", 4); at != std::string_view::npos; at = text.find("--", at + 1)) {
    if (text.substr(at + 2).starts_with(">")) return at + 3;
    if (text.substr(at + 2).starts_with("!>")) return at + 4;
  }
  return text.size();
}

// The begin of the close tag of <script> or <style>, whose text has no tags.
size_t raw_text_end(std::string_view text, std::string_view close_tag) {
  for (size_t at = text.find("</"); at != std::string_view::npos; at = text.find("</", at + 2))
    if (begins_with(text.substr(at), close_tag)) return at;
  return text.size();
}

}  // namespace

int64_t most_depth(std::string_view html) {
  std::unordered_map<std::string, int64_t> open;
  int64_t depth = 0, most = 0;
  std::string name;
  for (size_t at = html.find('<'); at != std::string_view::npos && at + 1 < html.size(); at = html.find('<', at)) {
    if (html.substr(at).starts_with("<!--")) {
      at += comment_end(html.substr(at));
      continue;
    }
    const bool closes = html[at + 1] == '/';
    size_t end = at + (closes ? 2 : 1);
    if (end >= html.size() || !is_ascii_letter(html[end])) {
      ++at;
      continue;
    }
    name.clear();
    while (end < html.size() && std::string_view("\t\n\f\r />").find(html[end]) == std::string_view::npos)
      name += ascii_lower(html[end++]);
    at = end;
    if (std::find(std::begin(kUncounted), std::end(kUncounted), name) != std::end(kUncounted)) continue;
    if (open.size() >= kMostNames && open.find(name) == open.end()) name.clear();  // one count for all others
    int64_t& count = open[name];
    if (closes && !name.empty()) {
      if (count > 0) --count, --depth;
    } else if (!closes) {
      ++count, ++depth;
      most = std::max(most, depth);
      if (name == "script" || name == "style") at += raw_text_end(html.substr(at), str("</", name));
    }
  }
  return most;
}

}  // namespace tokamak
