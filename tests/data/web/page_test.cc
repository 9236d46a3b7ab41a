// Pages become trees within limits, and text in the right charset.
#include "data/web/page.h"

#include <catch2/catch.hpp>

#include "base/strings.h"
#include "data/web/charset.h"
#include "data/web/page_depth.h"
#include "data/web/page_text.h"

using namespace tokamak;

namespace {

std::string text_of_page(const std::string& html) {
  Page::Problem problem{};
  const std::optional<Page> page = Page::parse(html, {}, problem);
  REQUIRE(page);
  return text_of(page->tree(), page->tree().root());
}

std::optional<Page::Problem> problem_of(const std::string& html, const HtmlLimits& limits = {}) {
  Page::Problem problem{};
  if (Page::parse(html, limits, problem)) return std::nullopt;
  return problem;
}

std::string repeated(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

}  // namespace

TEST_CASE("blocks are lines, and white space is as a browser shows it") {
  CHECK(text_of_page("<p>One  two\n<b>three</b></p><p>four<br>five") == "One two three\nfour\nfive");
  CHECK(text_of_page("<ul><li>a<li>b</ul><table><tr><td>c<td>d</table>") == "a\nb\nc\nd");
  CHECK(text_of_page("a&amp;b &lt; c&nbsp;d soft\u00adhyphen") == "a&b < c d softhyphen");
  CHECK(text_of_page("").empty());
}

TEST_CASE("the tree has tags, attributes and order, and elements can be removed") {
  Page::Problem problem{};
  const auto page =
      Page::parse("<div CLASS='x y' id=z hidden><p>one</p><custom-tag>two</custom-tag>three</div>", {}, problem);
  REQUIRE(page);
  PageTree tree = page->tree();
  std::vector<std::string> tags;
  NodeIndex div = kNoNode;
  for (NodeIndex node = tree.root(); node != kNoNode; node = tree.after(node, tree.root())) {
    tags.emplace_back(tree[node].is_text() ? "'" + std::string(tree[node].text) + "'" : std::string(tree[node].tag));
    if (tree[node].tag == "div") div = node;
  }
  CHECK(tags ==
        std::vector<std::string>{"html", "head", "body", "div", "p", "'one'", "custom-tag", "'two'", "'three'"});
  REQUIRE(div != kNoNode);
  CHECK(tree.attribute(div, "class") == "x y");
  CHECK(tree.attribute(div, "id") == "z");
  CHECK(tree.has_attribute(div, "hidden"));
  CHECK_FALSE(tree.has_attribute(div, "href"));
  const NodeIndex custom = tree[tree[div].first_child].next;
  tree.remove(custom);
  CHECK(text_of(tree, tree.root()) == "one\nthree");
  tree.remove(tree[div].first_child);
  CHECK(text_of(tree, tree.root()) == "three");
  CHECK(text_of(page->tree(), page->tree().root()) == "one\ntwothree");  // the copy was changed, not the page
}

TEST_CASE("nesting beyond the limit is refused before it is parsed") {
  for (const std::string open : {"<div>",
                                 "<b>",
                                 "<p><b>",
                                 "<table><td>",
                                 "<a><div>",
                                 "<svg>",
                                 "<template>",
                                 "<div></x>",
                                 "<div><table></div>",
                                 "<!--><div>",
                                 "<div a=\"</div>\">",
                                 "<div a='</div>' >",
                                 "<div><textarea></div></textarea>",
                                 "<svg><style><div></style></svg>",
                                 "<select><style></select><div></style>",
                                 "<svg><div></svg>",
                                 "<rt>",
                                 "<optgroup><option>",
                                 "<svg><desc><div></svg></div>",
                                 "<svg><title><div></svg></title></div>",
                                 "<!-- --!><div>",
                                 "<x-y>"}) {
    INFO(open);
    CHECK(problem_of(repeated(open, 100'000)) == Page::Problem::kTooDeep);
    CHECK(most_depth(repeated(open, 100'000), 2001) == 2001);
  }
}

TEST_CASE("long pages that are not deep are read") {
  for (const std::string part :
       {"<p>text", "<div>text</div>", "<li>a", "<br>", "<tr><td>x", "<option>o", "<img src=a>",
        "<script>if (a<b) document.write('<div>')</script>", "<!-- <div> -->", "<svg><path d='M 0'/><use/></svg>",
        "<table><tr><td><object></object></table>", "<ruby>x<rt>y</ruby>", "<select><option>a<option>b</select>",
        "<title>a<b></title>", "<textarea><div></textarea>", "<a href='>'>x</a>"}) {
    INFO(part);
    CHECK_FALSE(problem_of(repeated(part, 20'000)));
  }
}

TEST_CASE("nodes and memory are bounded") {
  CHECK(problem_of(repeated("<br>", 1000), {.nodes = 500}) == Page::Problem::kTooManyNodes);
  CHECK(problem_of(repeated("<i a=b c=d>", 200'000), {.depth = 1 << 30, .bytes_per_byte = 1}) ==
        Page::Problem::kTooMuchMemory);
}

TEST_CASE("the depth is found in one pass, whatever the page leaves open") {
  // Each of these would take minutes if a search began anew at each element.
  for (const std::string part : {"<!-- a -", "<!-- --!><i>", "<script><", "<script></scrip>", "<!-->", "</", "<style>"})
    CHECK(most_depth(repeated(part, 300'000), 1'000'000) >= 0);
  std::string names;
  for (int i = 0; i < 20'000; ++i) names += str("<x", i, "></x", i, ">");
  CHECK(most_depth(names, 100) == 1);
}

TEST_CASE("the depth is that of unclosed elements") {
  const auto depth = [](std::string_view html) { return most_depth(html, 100); };
  CHECK(depth("<div><div></div></div><div>") == 2);
  CHECK(depth("<p><p><p><li><td>") == 0);
  CHECK(depth("</div></div><div>") == 1);
  CHECK(depth("a < b <3 <") == 0);
  CHECK(depth("<div a='></div>'><div>") == 2);
  CHECK(depth("<div a=\"></div>\"><div>") == 2);
  CHECK(depth("<div =\"><div>\"></div>") == 2);  // a quote at the begin of a name is part of it
  CHECK(depth("<div a=b\"><div>") == 2);         // and within a value
  CHECK(depth("<table><object><b></object></table><div>") == 3);
  CHECK(depth("<table><b></table><div><div>") == 2);
  CHECK(depth("<svg><path/><g></g></svg><b>") == 2);
  CHECK(depth("<svg><div><path/><path/>") == 4);           // <div> ends SVG, so that <path/> is open
  CHECK(depth("<div><svg><desc></svg></div><div>") == 4);  // none of the end tags ends what is around <desc>
  CHECK(depth("<div><svg><title></svg></div><div>") == 4);
  CHECK(depth("<svg><style><div></style></svg><div>") == 3);
  CHECK(depth("<select><xmp></select><div><div><div>") == 4);  // <select> knows no <xmp>
  CHECK(depth("<div/><div/>") == 2);                           // HTML knows no elements that close themselves
  CHECK(depth("<ruby>a<rt>b</ruby><ruby>a<rt>b</ruby>") == 2);
  CHECK(depth("<title><b><b></title><textarea><b></textarea>") == 1);
  CHECK(most_depth(repeated("<b>", 50), 7) == 7);
}

TEST_CASE("the charset is that of the mark, the header, the page, or what the bytes are") {
  const std::string latin = "<p>caf\xe9</p>";
  CHECK(page_to_utf8(latin, "ISO-8859-1") == "<p>caf\u00e9</p>");
  CHECK(page_to_utf8("\x93x\x94", "iso-8859-1") == "\u201cx\u201d");  // as browsers: windows-1252
  CHECK(page_to_utf8("<meta charset=windows-1251>\xef\xf0\xe8", "") == "<meta charset=windows-1251>\u043f\u0440\u0438");
  CHECK(page_to_utf8("<META http-equiv=x content='text/html; charset=koi8-r'>\xd0\xd2\xc9", "") ==
        "<META http-equiv=x content='text/html; charset=koi8-r'>\u043f\u0440\u0438");
  CHECK(page_to_utf8("<p>\xe3\x81\x82", "") == "<p>\u3042");
  CHECK(page_to_utf8("\xef\xbb\xbf<p>\xc3\xa9", "iso-8859-1") == "<p>\u00e9");
  CHECK(page_to_utf8(std::string("\xff\xfe<\0p\0>\0", 8), "") == "<p>");
  CHECK(page_to_utf8("<meta charset=utf-16>plain", "") == "<meta charset=utf-16>plain");
  CHECK(page_to_utf8("x", "no-such-charset") == "x");
  CHECK(page_to_utf8("x", "../../etc/passwd") == "x");
}

TEST_CASE("bytes that are no character become U+FFFD, and nothing is lost after them") {
  CHECK(page_to_utf8("a\xff\xfe"
                     "b",
                     "utf-8") == "a\ufffd\ufffdb");
  CHECK(page_to_utf8("a\x81 z", "shift_jis") == "a\ufffd z");
  CHECK(page_to_utf8("end\x81", "shift_jis") == "end\ufffd");
  CHECK(valid_utf8("\xed\xa0\x80") == "\ufffd\ufffd\ufffd");
}
