#include "watch/panels.h"

#include <algorithm>
#include <cmath>

#include "base/printable.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr int kFewestRows = 4, kValidationColumns = 48, kFewestColumns = 40;
constexpr size_t kMostOfASample = 1000;  // characters

// The last ones, the newest at the bottom.
void draw_validations(Frame& frame, const Area& area, const Curves& curves) {
  const std::vector<SeriesPoint>& losses = curves.of("validation/loss");
  const std::vector<SeriesPoint>& bits = curves.of(kBitsPerByte);
  const auto row = [&](int at, const std::vector<std::string>& cells, Style style) {
    int column = area.column;
    for (const std::string& cell : cells) {
      column += kValidationColumns / 4;
      frame.put(at, column - columns_of(cell), cell, style);
    }
  };
  std::vector<std::string> heads = {"step", "validation", "perplexity"};
  if (!bits.empty()) heads.push_back("bits/byte");
  row(area.row, heads, Style::kSecondCurve);
  const auto count = std::min(static_cast<int>(losses.size()), area.rows - 1);
  for (int i = 0; i < count; ++i) {
    const SeriesPoint& loss = losses[losses.size() - static_cast<size_t>(count - i)];
    std::vector<std::string> cells = {str(loss.step), significant(loss.mean, 4), significant(std::exp(loss.mean), 4)};
    const auto found = std::find_if(bits.begin(), bits.end(), [&](const auto& one) { return one.step == loss.step; });
    if (found != bits.end()) cells.push_back(significant(found->mean, 4));
    row(area.row + 1 + i, cells, Style::kPlain);
  }
}

// In lines of whole words, at most so many; returns how many it takes.
int draw_wrapped(Frame& frame, const Area& area, const std::string& text) {
  int row = 0;
  std::string line;
  const auto flush = [&] {
    if (row < area.rows && !line.empty()) frame.put(area.row + row++, area.column, line);
    line.clear();
  };
  for (const std::string& word : split(text, ' ')) {
    if (columns_of(word) > area.columns) continue;
    if (!line.empty() && columns_of(line) + 1 + columns_of(word) > area.columns) flush();
    line += (line.empty() ? "" : " ") + word;
  }
  flush();
  return row;
}

void draw_samples(Frame& frame, const Area& area, const MetricRecord& record) {
  frame.put(area.row, area.column, str("samples at step ", record.step), Style::kCurve);
  const auto count = static_cast<int>(record.samples.size());
  const int each = std::max(1, (area.rows - 1) / std::max(1, count));
  int row = area.row + 1;
  for (const SampleText& sample : record.samples) {
    const int rows = std::min(each, area.row + area.rows - row);
    if (rows > 0) {
      row += draw_wrapped(frame, {row, area.column, rows, area.columns},
                          printable(sample.prompt + sample.text, kMostOfASample));
    }
  }
}

void draw_log(Frame& frame, const Area& area, const std::vector<std::string>& log) {
  frame.put(area.row, area.column, "train.log", Style::kCurve);
  const auto count = std::min(static_cast<int>(log.size()), area.rows - 1);
  for (int i = 0; i < count; ++i) {
    const std::string& line = log[log.size() - static_cast<size_t>(count - i)];
    frame.put(area.row + 1 + i, area.column, fitting(line, area.columns));
  }
}

}  // namespace

void draw_panels(Frame& frame, const Area& area, const RunView& view, const std::vector<std::string>& log) {
  if (area.rows < kFewestRows) return;
  Area rest = area;
  const auto take = [&](int columns) {
    const Area own{rest.row, rest.column, rest.rows, std::min(columns, rest.columns)};
    rest.column += own.columns + 2;
    rest.columns -= own.columns + 2;
    return own;
  };
  if (!view.curves().of("validation/loss").empty() && rest.columns >= kValidationColumns) {
    draw_validations(frame, take(kValidationColumns), view.curves());
  }
  if (view.samples() && rest.columns >= kFewestColumns) {
    const bool is_shared = !log.empty() && rest.columns >= 2 * kFewestColumns + 2;
    draw_samples(frame, take(is_shared ? rest.columns * 2 / 5 : rest.columns), *view.samples());
  }
  if (!log.empty() && rest.columns >= kFewestColumns) draw_log(frame, rest, log);
}

}  // namespace tokamak
