// The article of a page, without what surrounds it.
#include "data/web/main_content.h"

#include <catch2/catch.hpp>

#include "base/strings.h"
#include "data/web/text_paragraphs.h"
#include "data/web/whole_content.h"

using namespace tokamak;

namespace {

std::string main_text(const std::string& body) {
  Page::Problem problem{};
  const std::optional<Page> page = Page::parse("<html><head><title>Title</title></head><body>" + body, {}, problem);
  REQUIRE(page);
  return MainContent().extract(*page);
}

const std::string kSentence =
    "The harbour lay quiet, and the boats that had come in with the tide were tied to the old wall. ";

std::string article(int paragraphs) {
  std::string out = "<h1>Boats</h1>";
  for (int i = 0; i < paragraphs; ++i) out += str("<p>Paragraph ", i, ". ", kSentence, kSentence, "</p>");
  return out;
}

const std::string kMenu =
    "<nav><a href=/>Home</a> <a href=/a>About</a></nav><div class=menu><a href=/b>Products</a></div>";
const std::string kFoot =
    "<div class='share-buttons'>Share this</div><div id=comments><p>First comment!</p></div>"
    "<footer>Copyright 2024</footer>";

}  // namespace

TEST_CASE("an article is found by its mark, and menus, shares, comments and footers are left out") {
  for (const std::string open :
       {"<article>", "<div class=post-content>", "<div id=article-body>", "<main>", "<div itemprop=articleBody>",
        "<div id=content>", "<div class='main-wrap'>", "<div>"}) {
    INFO(open);
    const std::string text = main_text(kMenu + open + article(5) + "</div></article></main>" + kFoot);
    CHECK(text.find("Paragraph 0.") != std::string::npos);
    CHECK(text.find("Paragraph 4.") != std::string::npos);
    for (const std::string foreign : {"Home", "Products", "Share this", "First comment", "Copyright", "Title"})
      CHECK(text.find(foreign) == std::string::npos);
  }
}

TEST_CASE("lists, tables, quotes and code of an article are content, and code keeps its lines") {
  const std::string text =
      main_text("<article>" + article(4) +
                "<ul><li>First point</li><li>Second point</li></ul>"
                "<table><tr><th>Year</th><td>1984</td></tr></table><blockquote>Quoted words</blockquote>"
                "<pre>for x:\n    print(x)\n</pre><p>" +
                kSentence + "</p></article>");
  for (const std::string part : {"First point", "Second point", "1984", "Quoted words", "for x:\n    print(x)"})
    CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("the lead between the heading and the marked part belongs to the article") {
  const auto text_of = [](const std::string& before) {
    return main_text(kMenu + "<div class=wrap>" + before + "<div class=article-body>" + article(5).substr(14) +
                     "</div></div>");
  };
  const std::string heading = "<h1>Boats</h1>",
                    lead = "After the storm of Monday, no boat of the village was missing at all.";
  for (const std::string tag : {"p", "div", "h2"}) {
    INFO(tag);
    const std::string text =
        text_of(heading + "<div><p>By a reporter.</p><" + tag + " class=teaser>" + lead + "</" + tag + "></div>");
    CHECK(text.starts_with(lead + "\nParagraph 0."));
  }
  const std::string absent[] = {
      "<p>" + lead + "</p>",                                        // no heading
      "<p>" + lead + "</p>" + heading,                              // above the heading
      heading + "<p>" + lead + " <a href=/x>More</a></p>",          // leads elsewhere
      heading + "<a href=/x><p>" + lead + "</p></a>",               // is within a link
      heading + "<div class=newsletter><p>" + lead + "</p></div>",  // its name says what it is
      heading + "<ul><li><p>" + lead + "</p></li></ul>",            // an item of a list
      heading + "<p>By a reporter of ours.</p>",                    // too short
      "<h1>Another page</h1><p>" + lead + "</p>" + heading};        // of another heading
  for (const std::string& before : absent) {
    INFO(before);
    CHECK(text_of(before).starts_with("Paragraph 0."));
  }
}

TEST_CASE("a teaser that leads to another page goes, and one without a link stays") {
  const std::string words = "Seven new boats will come to the harbour.";
  const std::string own =
      main_text("<article><div class=teaser><p>" + words + "</p></div>" + article(5) + "</article>");
  const std::string other = main_text("<article><div class=teaser><p>" + words + " <a href=/x>Read on</a></p></div>" +
                                      article(5) + "</article>");
  CHECK(own.find(words) != std::string::npos);
  CHECK(other.find(words) == std::string::npos);
}

TEST_CASE("blocks that are mostly links go, and links in sentences stay") {
  std::string farm = "<div>";
  for (int i = 0; i < 12; ++i) farm += str("<a href=/", i, ">Another story number ", i, "</a> ");
  const std::string text = main_text(
      "<article>" + article(4) + farm +
      "</div><p>See <a href=/x>the other page</a> for more of these boats and of their owners.</p></article>");
  CHECK(text.find("Another story") == std::string::npos);
  CHECK(text.find("See the other page for more") != std::string::npos);
}

TEST_CASE("hidden parts are no content") {
  const std::string text = main_text("<article>" + article(4) +
                                     "<div style='display: none'>Secret</div><p aria-hidden=true>Unseen</p></article>");
  CHECK(text.find("Secret") == std::string::npos);
  CHECK(text.find("Unseen") == std::string::npos);
}

TEST_CASE("a page without marks or paragraphs still gives its text") {
  const std::string text =
      main_text("<div><div>" + kSentence + kSentence + "<br>" + kSentence + kSentence + "</div></div>");
  CHECK(text.find("The harbour lay quiet") == 0);
  CHECK(main_text("").empty());
  CHECK(main_text("<script>var x = '<p>no</p>';</script>").empty());
}

TEST_CASE("a form around the page is its container, and a form of a few fields is not content") {
  CHECK(main_text("<form id=aspnetForm>" + article(5) + "</form>").find("Paragraph 4.") != std::string::npos);
  CHECK(main_text(article(5) + "<form>Your name <input></form>").find("Your name") == std::string::npos);
}

TEST_CASE("paragraphs that look like text are long or between such") {
  Page::Problem problem{};
  const auto page =
      Page::parse("<div>Menu</div><p>" + kSentence + kSentence + "</p><p>Short between.</p><p>And another.</p><p>" +
                      kSentence + kSentence + "</p><p><a href=x>" + kSentence + "</a></p><div>Foot</div>",
                  {}, problem);
  REQUIRE(page);
  const std::string text = text_paragraphs(page->tree());
  CHECK(text.find("Short between.") != std::string::npos);
  CHECK(text.find("And another.") != std::string::npos);
  CHECK(text.find("Menu") == std::string::npos);
  CHECK(text.find("Foot") == std::string::npos);
}

TEST_CASE("many short paragraphs take no longer than as many bytes of others") {
  std::string items;  // a search for neighbours from each of them would take minutes
  for (int i = 0; i < 100'000; ++i) items += "<dd>ab";
  CHECK(main_text(items).size() > 100'000);
}

TEST_CASE("the whole content leaves out the frame and keeps lists and loose text") {
  Page::Problem problem{};
  const auto page = Page::parse(
      kMenu + "<div class=wrap>" + article(3) + "Loose text.<ul><li>Point one</li></ul></div>" + kFoot, {}, problem);
  REQUIRE(page);
  const std::string text = WholeContent().extract(*page);
  for (const std::string part : {"Paragraph 2.", "Loose text.", "Point one"})
    CHECK(text.find(part) != std::string::npos);
  for (const std::string foreign : {"Products", "Share this", "First comment", "Copyright"})
    CHECK(text.find(foreign) == std::string::npos);
}

TEST_CASE("the union has the lines of both, each once and in order") {
  CHECK(union_of_lines("a\nb\nc", "a\nx\nb\nc\ny") == "a\nx\nb\nc\ny");
  CHECK(union_of_lines("a\nb", "b\na") == "a\nb");
  CHECK(union_of_lines("", "x\ny") == "x\ny");
  CHECK(union_of_lines("x\ny", "") == "x\ny");
  CHECK(union_of_lines("one long line", "long") == "one long line");  // a part of a line is not more text
}
