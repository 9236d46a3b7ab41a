#include "report/page.h"

#include "base/error.h"
#include "base/strings.h"
#include "report/page_parts.h"
#include "report/text.h"

namespace tokamak {

namespace {

std::string part_of(std::string_view name, const std::vector<PageRun>& runs, const std::string& program) {
  if (name == "TITLE") {
    std::vector<std::string> names;
    for (const PageRun& run : runs) names.push_back(run.name);
    return html_escaped(join(names, ", "));
  }
  if (name == "STYLE") return str(page_parts::dygraphs_css(), "\n", page_parts::page_css());
  if (name == "LIBRARY") return str(page_parts::dygraphs_js(), "\n", page_parts::dygraphs_synchronizer());
  if (name == "LICENCE") return html_escaped(page_parts::dygraphs_licence());
  if (name == "SCRIPT") return std::string(page_parts::page_js());
  if (name == "DATA") return page_data(runs, program);
  TOKAMAK_CHECK(name == "TEXT", "page.html names an unknown part ", name);
  std::string text;
  for (const PageRun& run : runs) text += html_escaped(text_of(run.report)) + "\n";
  return text;
}

}  // namespace

std::string html_escaped(std::string_view text) {
  constexpr std::string_view kMarks = "&<>\"", kEntities[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
  std::string out;
  for (const char& c : text) {
    const size_t mark = kMarks.find(c);
    out += mark == std::string_view::npos ? std::string_view(&c, 1) : kEntities[mark];
  }
  return out;
}

std::string page_of(const std::vector<PageRun>& runs, const std::string& program) {
  TOKAMAK_CHECK(!runs.empty(), "a page needs a run");
  std::string page;
  std::string_view rest = page_parts::page_html();
  for (size_t open = rest.find("{{"); open != std::string_view::npos; open = rest.find("{{")) {
    const size_t close = rest.find("}}", open);
    TOKAMAK_CHECK(close != std::string_view::npos, "page.html: {{ without }}");
    page += rest.substr(0, open);
    page += part_of(rest.substr(open + 2, close - open - 2), runs, program);
    rest.remove_prefix(close + 2);
  }
  page += rest;
  return page;
}

}  // namespace tokamak
