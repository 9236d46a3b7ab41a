#include "data/web/page_text.h"

#include <algorithm>
#include <utility>

namespace tokamak {

namespace {

// Sorted.
constexpr std::string_view kBlocks[] = {
    "address", "article", "aside", "blockquote", "body",  "br",       "caption",    "center", "dd",      "details",
    "dialog",  "dir",     "div",   "dl",         "dt",    "fieldset", "figcaption", "figure", "footer",  "form",
    "h1",      "h2",      "h3",    "h4",         "h5",    "h6",       "header",     "hr",     "html",    "legend",
    "li",      "main",    "menu",  "nav",        "ol",    "option",   "p",          "pre",    "section", "summary",
    "table",   "tbody",   "td",    "textarea",   "tfoot", "th",       "thead",      "title",  "tr",      "ul"};

bool is_white(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f'; }

// The bytes of white space at `at`: HTML's, and spaces that do not break; 0: there is none.
size_t white_length(std::string_view text, size_t at) {
  if (is_white(text[at])) return 1;
  if (text.substr(at, 2) == "\u00a0") return 2;
  return text.substr(at, 3) == "\u202f" ? 3 : 0;
}

// The bytes of a character that is not seen: a soft hyphen, a space without width, a byte order mark.
size_t unseen_length(std::string_view text, size_t at) {
  if (static_cast<unsigned char>(text[at]) < 0xC2) return 0;
  if (text.substr(at, 2) == "\u00ad") return 2;
  const std::string_view three = text.substr(at, 3);
  return three == "\u200b" || three == "\ufeff" || three == "\u2060" ? 3 : 0;
}

}  // namespace

bool is_block(std::string_view tag) { return std::binary_search(std::begin(kBlocks), std::end(kBlocks), tag); }

void TextBuilder::end_block() {
  new_line_ = !text_.empty();
  gap_ = false;
}

void TextBuilder::add(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (const size_t white = white_length(text, at); white > 0) {
      gap_ = true;
      at += white;
    } else if (const size_t unseen = unseen_length(text, at); unseen > 0) {
      at += unseen;
    } else {
      if (new_line_)
        text_ += '\n';
      else if (gap_ && !text_.empty())
        text_ += ' ';
      new_line_ = gap_ = false;
      const size_t begin = at;
      while (at < text.size() && white_length(text, at) == 0 && unseen_length(text, at) == 0) ++at;
      text_ += text.substr(begin, at - begin);
    }
  }
}

void TextBuilder::add_preformatted(std::string_view text) {
  if (text.find_first_not_of(" \n\t\r\f") == std::string_view::npos) return add(text);
  if (new_line_)
    text_ += '\n';
  else if (gap_ && !text_.empty())
    text_ += ' ';
  new_line_ = gap_ = false;
  text_ += text;
}

std::string TextBuilder::take() {
  while (!text_.empty() && is_white(text_.back())) text_.pop_back();
  gap_ = new_line_ = false;
  return std::exchange(text_, {});
}

std::string text_of(const PageTree& tree, NodeIndex top) {
  TextBuilder builder;
  const auto border = [&](NodeIndex node) {
    if (is_block(tree[node].tag)) builder.end_block();
  };
  walk(
      tree, top,
      [&](NodeIndex node) {
        border(node);
        builder.add(tree[node].text);
        return true;
      },
      border);
  return builder.take();
}

}  // namespace tokamak
