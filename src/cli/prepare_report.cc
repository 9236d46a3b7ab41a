#include "cli/prepare_report.h"

#include <algorithm>

#include "base/log.h"
#include "base/printable.h"
#include "base/strings.h"
#include "report/page.h"
#include "report/page_parts.h"

namespace tokamak::cli {

namespace {

constexpr double kSecondsBetweenLines = 5;

std::string share_of(double part, double all) { return all > 0 ? fixed(100 * part / all, 1) + "%" : "-"; }

// A table of texts; the first column is left-aligned.
struct Table {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};

std::string table_text(const Table& table) {
  std::vector<size_t> widths(table.head.size());
  const auto measure = [&](const auto& row) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  };
  measure(table.head);
  for (const auto& row : table.rows) measure(row);
  std::string out;
  const auto add = [&](const auto& row) {
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - row[i].size(), ' ');
      out += i == 0 ? str("  ", row[i], pad) : str("  ", pad, row[i]);
    }
    out += "\n";
  };
  add(table.head);
  for (const auto& row : table.rows) add(row);
  return out;
}

std::string table_page(const Table& table) {
  std::string out = "<table><tr>";
  for (const std::string& cell : table.head) out += str("<th>", html_escaped(cell), "</th>");
  out += "</tr>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (const std::string& cell : row) out += str("<td>", html_escaped(cell), "</td>");
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

std::vector<std::string> cells(const std::string& name, const Tally& tally, const Tally& all) {
  return {name, str(tally.documents), share_of(double(tally.documents), double(all.documents)),
          human_bytes(tally.bytes), share_of(double(tally.bytes), double(all.bytes))};
}

Table flow_of(const PrepareCounts& counts) {
  Table table = {{"source", "documents read", "bytes read", "documents left", "", "bytes left"}, {}};
  const auto add = [&](const std::string& name, const Tally& in, const Tally& out) {
    table.rows.push_back({name, str(in.documents), human_bytes(in.bytes), str(out.documents),
                          share_of(double(out.documents), double(in.documents)), human_bytes(out.bytes)});
  };
  for (const auto& [source, read] : counts.read()) {
    const auto left = counts.written().find(source);
    add(printable(source, 60), read, left == counts.written().end() ? Tally{} : left->second);
  }
  if (counts.read().size() > 1) add("all", sum_of(counts.read()), sum_of(counts.written()));
  return table;
}

// By the number of documents, the most first.
Table drops_of(const PrepareCounts& counts) {
  const Tally all = sum_of(counts.read());
  std::vector<std::pair<std::string, Tally>> drops;
  for (const auto& [reason, tallies] : counts.drops()) drops.emplace_back(reason, sum_of(tallies));
  std::stable_sort(drops.begin(), drops.end(),
                   [](const auto& a, const auto& b) { return a.second.documents > b.second.documents; });
  Table table = {{"dropped by", "documents", "", "bytes", ""}, {}};
  for (const auto& [reason, tally] : drops) table.rows.push_back(cells(reason, tally, all));
  return table;
}

Table tallies_of(const std::string& name, const std::string& of, const std::map<std::string, Tally>& tallies) {
  Tally all;
  for (const auto& [key, tally] : tallies) all += tally;
  Table table = {{name, of, "", "bytes", ""}, {}};
  for (const auto& [key, tally] : tallies)
    table.rows.push_back(cells(key.empty() ? "unknown" : printable(key, 60), tally, all));
  return table;
}

// The least value of the bucket that has the share `part` of all below it.
double quantile(const Histogram& histogram, double part) {
  const auto wanted = static_cast<int64_t>(part * double(histogram.count()));
  int64_t below = 0;
  for (const auto& [bucket, count] : histogram.buckets()) {
    below += count;
    if (below > wanted) return Histogram::least_of(bucket);
  }
  return histogram.buckets().empty() ? 0 : Histogram::least_of(histogram.buckets().rbegin()->first);
}

Table values_of(const PrepareCounts& counts) {
  Table table = {{"value", "documents", "5%", "25%", "50%", "75%", "95%"}, {}};
  for (const auto& [name, histogram] : counts.values()) {
    std::vector<std::string> row = {printable(name, 60), str(histogram.count())};
    for (const double part : {0.05, 0.25, 0.5, 0.75, 0.95}) row.push_back(significant(quantile(histogram, part), 2));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table outputs_of(const PrepareReport& report) {
  Table table = {{"data set", "documents", "tokens", "shards", "bytes per token"}, {}};
  for (const auto& [name, set] : {std::pair("train", &report.train), std::pair("validation", &report.validation)})
    if (*set)
      table.rows.push_back({name, str((*set)->documents()), str((*set)->tokens()), str((*set)->shards.size()),
                            fixed(double((*set)->text_bytes) / double((*set)->tokens()), 2)});
  return table;
}

struct Section {
  std::string title;
  Table table;
};

std::vector<Section> sections_of(const PrepareReport& report) {
  std::vector<Section> sections = {{"Sources", flow_of(report.counts)}};
  const auto add = [&](const std::string& title, Table table) {
    if (!table.rows.empty()) sections.push_back({title, std::move(table)});
  };
  add("Dropped documents", drops_of(report.counts));
  add("Removed from documents", tallies_of("removed by", "times", report.counts.removals()));
  const auto& languages = report.counts.languages();
  if (languages.size() > 1 || !languages.contains("")) add("Languages", tallies_of("language", "documents", languages));
  add("Values: the least of the bucket at each share of the documents", values_of(report.counts));
  add("Output", outputs_of(report));
  return sections;
}

std::string damage_of(const PrepareCounts& counts) {
  std::string out;
  for (const std::string& problem : counts.damaged()) out += str("damaged: ", printable(problem, 300), "\n");
  return out;
}

// A histogram as bars of one colour, with its ends.
std::string bars_of(const Histogram& histogram) {
  int64_t most = 1;
  for (const auto& [bucket, count] : histogram.buckets()) most = std::max(most, count);
  constexpr int kHeight = 60, kWidth = 6;
  int first = 0, last = 0;
  bool any = false;
  for (const auto& [bucket, count] : histogram.buckets()) {
    if (bucket == Histogram::kZero) continue;
    if (!any) first = bucket;
    any = true, last = bucket;
  }
  std::string bars;
  for (const auto& [bucket, count] : histogram.buckets()) {
    const int column = bucket == Histogram::kZero ? 0 : bucket - first + 2;
    const double height = std::max(1.0, kHeight * double(count) / double(most));
    bars += str("<rect x=\"", column * kWidth, "\" y=\"", fixed(kHeight - height, 1), "\" width=\"", kWidth - 1,
                "\" height=\"", fixed(height, 1), "\"><title>from ", significant(Histogram::least_of(bucket), 3), ": ",
                count, "</title></rect>");
  }
  const int width = (last - first + 3) * kWidth;
  return str(
      "<svg class=\"bars\" width=\"", width, "\" height=\"", kHeight, "\">", bars, "</svg><div class=\"ends\">",
      any ? str(significant(Histogram::least_of(first), 2), " to ", significant(Histogram::least_of(last + 1), 2))
          : "0",
      "</div>");
}

}  // namespace

void PrepareLog::at(const PrepareProgress& progress) {
  const auto& tasks = progress.tasks;
  if (progress.step != step_) {
    step_ = progress.step;
    is_over_ = false;
    of_step_.restart(), since_.restart();
    if (tasks.found > 0) log::info(step_, ": ", tasks.found, " of ", tasks.all, " tasks were done before");
  }
  const bool is_over = tasks.done == tasks.all && tasks.done > tasks.found;
  if (is_over_ || (!is_over && since_.seconds() < kSecondsBetweenLines)) return;
  is_over_ = is_over;
  since_.restart();
  const double seconds = of_step_.seconds();
  std::string rates, rest;
  if (progress.total_bytes > 0 && progress.bytes > 0 && seconds > 0) {
    const double share = double(progress.bytes) / double(progress.total_bytes);
    rates = str(", ", human_count(double(progress.documents)), " documents at ",
                human_count(double(progress.documents) / seconds), "/s, ",
                human_bytes(double(progress.bytes) / seconds), "/s of input");
    if (!is_over && share < 1) rest = str(", ", human_duration(seconds * (1 - share) / share), " to go");
  }
  if (progress.tasks.is_waiting) rest = ", waiting for other ranks";
  log::info(step_, ": ", tasks.done, " of ", tasks.all, " tasks", rates,
            is_over ? str(", in ", human_duration(seconds)) : rest);
}

std::string report_text(const PrepareReport& report) {
  std::string out = str(report.files, " file(s), ", human_bytes(report.bytes), "\n", damage_of(report.counts));
  for (const Section& section : sections_of(report)) out += str("\n", section.title, "\n", table_text(section.table));
  return out;
}

std::string report_page(const PrepareReport& report, const std::string& config, const std::string& program) {
  std::string out =
      str("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Prepared data</title><style>",
          page_parts::page_css(),
          "td,th{padding:.2em .8em;text-align:right}td:first-child,th:first-child{text-align:left}"
          ".bars rect{fill:currentColor;opacity:.6}.ends{font-size:80%}.value{display:inline-block;margin:1em}"
          "</style></head><body><main><h1>Prepared data</h1><p>",
          report.files, " file(s), ", human_bytes(report.bytes), ", by ", html_escaped(program), ", ", report.identity,
          "</p>\n");
  if (!report.counts.damaged().empty()) out += str("<pre>", html_escaped(damage_of(report.counts)), "</pre>\n");
  for (const Section& section : sections_of(report))
    out += str("<h2>", section.title, "</h2>\n", table_page(section.table));
  out += "<h2>Histograms</h2>\n";
  for (const auto& [name, histogram] : report.counts.values())
    out += str("<div class=\"value\"><h3>", html_escaped(printable(name, 60)), "</h3>", bars_of(histogram), "</div>\n");
  out += "<h2>Examples of dropped documents</h2>\n";
  for (const auto& [reason, examples] : report.counts.examples()) {
    out += str("<h3>", html_escaped(reason), "</h3>\n");
    for (const DropExample& example : examples)
      out += str("<p><code>", html_escaped(example.id), "</code></p><pre>", html_escaped(example.text), "</pre>\n");
  }
  return out + str("<h2>Config</h2><pre>", html_escaped(config), "</pre></main></body></html>\n");
}

std::string explanation_text(const Explanation& explanation) {
  const Document& document = explanation.document;
  std::string out = str("id:       ", printable(document.id, 200), "\nfile:     ", explanation.file, "\n");
  if (!document.url.empty()) out += str("url:      ", printable(document.url, 200), "\n");
  if (!document.language.empty()) out += str("language: ", printable(document.language), "\n");
  bool is_dropped = false;
  for (const StageVerdict& stage : explanation.stages) {
    const std::string verdict = !stage.is_known ? str("not known: the search has not run, or did not get the document")
                                : stage.is_kept
                                    ? str(is_dropped ? "would keep it" : "kept", ", ", stage.bytes, " bytes")
                                    : str(is_dropped ? "would drop it by " : "DROPPED by ", stage.reason);
    out += str(stage.stage, ": ", verdict, "\n");
    is_dropped |= !stage.is_kept;
    for (const DocumentValue& value : stage.values)
      out +=
          str("    ", printable(value.name, 60), std::string(value.name.size() < 28 ? 28 - value.name.size() : 1, ' '),
              significant(value.value, 6), "\n");
  }
  return out + str("---\n", printable_lines(document.text), "\n");
}

}  // namespace tokamak::cli
