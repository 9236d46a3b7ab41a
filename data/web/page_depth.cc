#include "data/web/page_depth.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/web/headers.h"
#include "data/web/page.h"

namespace tokamak {

namespace {

// Without content, or with an end that HTML supplies.
constexpr std::string_view kUncounted[] = {"area",     "base",   "basefont", "bgsound", "body",   "br",    "col",
                                           "colgroup", "dd",     "dt",       "embed",   "frame",  "head",  "hr",
                                           "html",     "img",    "image",    "input",   "keygen", "li",    "link",
                                           "meta",     "option", "p",        "param",   "source", "tbody", "td",
                                           "tfoot",    "th",     "thead",    "tr",      "track",  "wbr"};

// Elements whose content is text, unless another element takes it for tags: <select>, or one of SVG or MathML.
constexpr std::string_view kText[] = {"iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp"};

// An end tag within one of these does not end an element around it.
constexpr std::string_view kBarriers[] = {"applet", "marquee", "math", "object", "select", "svg", "table", "template"};
// Neither does one in these, which hold HTML within SVG or MathML.
constexpr std::string_view kForeignBarriers[] = {"annotation-xml", "desc", "foreignobject", "mi", "mn", "mo", "ms",
                                                 "mtext"};

// Within SVG and MathML these end it (HTML Living Standard, 13.2.6.5).
constexpr std::string_view kBreakouts[] = {
    "b",      "big",     "blockquote", "body", "br",    "center", "code", "dd",  "div",  "dl", "dt",    "em",
    "embed",  "font",    "h1",         "h2",   "h3",    "h4",     "h5",   "h6",  "head", "hr", "i",     "img",
    "li",     "listing", "menu",       "meta", "nobr",  "ol",     "p",    "pre", "ruby", "s",  "small", "span",
    "strong", "strike",  "sub",        "sup",  "table", "tt",     "u",    "ul",  "var"};

template <size_t n>
bool is_in(const std::string_view (&names)[n], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

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

struct Tag {
  size_t end = 0;  // behind its ">"
  bool closes_itself = false;
};

// The end of the tag whose attributes begin at `at`: values in quotes may hold a ">".
Tag tag_end(std::string_view html, size_t at) {
  enum { kBeforeName, kName, kAfterName, kBeforeValue, kValue } state = kBeforeName;
  for (; at < html.size(); ++at) {
    const char c = html[at];
    if (c == '>') return {at + 1, state < kBeforeValue && html[at - 1] == '/'};
    const bool is_gap = std::string_view("\t\n\f\r ").find(c) != std::string_view::npos;
    if (state == kValue) {
      if (is_gap) state = kBeforeName;
    } else if (state == kBeforeValue) {
      if (is_gap) continue;
      state = kValue;
      if (c != '"' && c != '\'') continue;
      at = html.find(c, at + 1);
      if (at == std::string_view::npos) break;
      state = kBeforeName;
    } else if (c == '/') {
      state = kBeforeName;
    } else if (is_gap) {
      if (state == kName) state = kAfterName;
    } else {
      state = c == '=' && state != kBeforeName ? kBeforeValue : kName;
    }
  }
  return {html.size()};
}

// The open elements by name, in frames from one barrier to the next.
class OpenElements {
 public:
  int64_t depth() const { return depth_; }
  bool is_text(std::string_view name) const {  // surely, so that what it holds can be skipped
    return is_in(kText, name) && foreign_ == 0 && (name == "script" || selects_ == 0);
  }

  void open(const std::string& name, bool closes_itself) {
    Frame& top = frames_.back();
    const bool in_foreign = is_foreign(top.name) && !top.is_left;
    if (in_foreign && is_in(kBreakouts, name)) top.is_left = true;
    if (in_foreign && closes_itself && !top.is_left) return;
    if (is_in(kUncounted, name)) return;
    ++depth_, ++top.open[name], ++top.count;
    const bool is_barrier =
        is_in(kBarriers, name) || (foreign_ > 0 && (is_in(kForeignBarriers, name) || is_in(kText, name)));
    if (!is_barrier) return;
    frames_.push_back({name});
    count(name, 1);
  }

  void close(const std::string& name) {
    if (frames_.size() > 1 && frames_.back().name == name) end_frame();
    Frame& top = frames_.back();
    const auto found = top.open.find(name);
    if (found == top.open.end()) return;
    --depth_, --top.count;
    if (--found->second == 0) top.open.erase(found);
    if (name == "ruby")  // its parts end with it, and do not nest in it
      for (const char* part : {"rb", "rp", "rt", "rtc"}) forget(part);
  }

 private:
  struct Frame {
    std::string name;
    std::unordered_map<std::string, int64_t> open = {};
    int64_t count = 0;
    bool is_left = false;  // HTML has ended this part of SVG or MathML
  };

  static bool is_foreign(std::string_view name) { return name == "svg" || name == "math"; }

  void count(std::string_view name, int by) {
    foreign_ += is_foreign(name) ? by : 0;
    selects_ += name == "select" ? by : 0;
  }

  // The end of a table or an object ends what is open in it. Elsewhere that is not sure.
  void end_frame() {
    const Frame ended = std::move(frames_.back());
    frames_.pop_back();
    count(ended.name, -1);
    if (one_of(ended.name, {"applet", "marquee", "object", "table", "template"})) {
      depth_ -= ended.count;
      return;
    }
    for (const auto& [name, open] : ended.open) frames_.back().open[name] += open;
    frames_.back().count += ended.count;
  }

  void forget(const std::string& name) {
    const auto found = frames_.back().open.find(name);
    if (found == frames_.back().open.end()) return;
    depth_ -= found->second, frames_.back().count -= found->second;
    frames_.back().open.erase(found);
  }

  std::vector<Frame> frames_ = std::vector<Frame>(1);
  int64_t depth_ = 0, foreign_ = 0, selects_ = 0;
};

}  // namespace

int64_t most_depth(std::string_view html, int64_t enough) {
  OpenElements elements;
  int64_t most = 0;
  std::string name;
  for (size_t at = html.find('<'); at != std::string_view::npos && at + 1 < html.size() && most < enough;
       at = html.find('<', at)) {
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
    const Tag tag = tag_end(html, end);
    at = tag.end;
    if (closes) {
      elements.close(name);
      continue;
    }
    const bool is_text = elements.is_text(name);
    elements.open(name, tag.closes_itself);
    most = std::max(most, elements.depth());
    if (is_text) at += raw_text_end(html.substr(at), str("</", name));
  }
  return most;
}

}  // namespace tokamak
