#include "watch/chart.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "watch/braille.h"

namespace tokamak {

namespace {

constexpr int kLabelColumns = 11;

struct Range {
  double low = HUGE_VAL, high = -HUGE_VAL;  // an empty range
  bool is_empty() const { return low > high; }
  void add(double from, double to) {
    low = std::min(low, from);
    high = std::max(high, to);
  }
  double share_of(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

// The points of a curve from a step on, and the ranges of their steps and values.
struct VisiblePart {
  std::vector<CurvePoint> points;
  Range steps, values;
};

VisiblePart visible_part(const std::vector<CurvePoint>& points, const ChartView& view, int dots) {
  const auto begin = std::lower_bound(points.begin(), points.end(), view.from_step,
                                      [](const CurvePoint& point, int64_t step) { return point.step < step; });
  if (begin == points.end()) return {};
  VisiblePart part{.points = downsample({begin, points.end()}, dots)};
  part.steps.add(double(begin->step), double(points.back().step));
  for (const CurvePoint& point : part.points) part.values.add(point.low, point.high);
  return part;
}

void draw_title(Frame& frame, const Area& area, const Chart& chart) {
  int column = area.column;
  const int end = area.column + area.columns;
  for (const ChartCurve& curve : chart.curves) {
    const std::string value = curve.points.empty() ? "-" : text_of(curve.points.back().mean, chart.unit);
    const bool fits = column + columns_of(curve.title) + 1 + columns_of(value) <= end;
    if (column == area.column && !fits) frame.put(area.row, column, fitting(curve.title, area.columns), curve.style);
    if (!fits || (column > area.column && curve.points.empty())) continue;
    column = frame.put(area.row, column, curve.title, curve.style) + 1;
    column = frame.put(area.row, column, value, Style::kBold) + 2;
  }
}

// Maps values to shares of the axis, 0 at the bottom, and back.
class Scale {
 public:
  Scale(Range range, bool is_log) : is_log_(is_log && range.low > 0), range_{at(range.low), at(range.high)} {}
  double share_of(double value) const { return range_.share_of(at(value)); }
  double value_at(double share) const {
    const double value = range_.low + share * (range_.high - range_.low);
    return is_log_ ? std::exp(value) : value;
  }

 private:
  double at(double value) const { return is_log_ ? std::log(value) : value; }
  bool is_log_;
  Range range_;
};

// Adds dots to those that are there already, in a style of their own.
void lay(Frame& frame, const Area& plot, const BrailleCanvas& dots, Style style) {
  for (int row = 0; row < plot.rows; ++row) {
    for (int column = 0; column < plot.columns; ++column) {
      const char32_t glyph = dots.at(column, row);
      if (glyph == 0x2800) continue;
      const char32_t before = frame.at(plot.row + row, plot.column + column).glyph;
      const bool is_shared = before > 0x2800 && before < 0x2900;
      frame.set(plot.row + row, plot.column + column, {is_shared ? before | glyph : glyph, style});
    }
  }
}

// The mean is a solid line. The band from least to greatest has every second dot, so noise does not hide the line.
void draw_curve(Frame& frame, const Area& plot, const std::vector<CurvePoint>& points, const Range& steps,
                const Scale& scale, Style style) {
  BrailleCanvas line(plot.columns, plot.rows), band(plot.columns, plot.rows);
  const auto x_of = [&](const CurvePoint& point) {
    return static_cast<int>(std::lround(steps.share_of(static_cast<double>(point.step)) * (line.width() - 1)));
  };
  const auto y_of = [&](double value) {
    return static_cast<int>(std::lround((1 - scale.share_of(value)) * (line.height() - 1)));
  };
  for (size_t i = 0; i < points.size(); ++i) {
    const int x = x_of(points[i]), low = y_of(points[i].low), high = y_of(points[i].high), mean = y_of(points[i].mean);
    for (int y = high; y <= low; ++y) {
      if ((x + y) % 2 == 0 || y == high || y == low) band.set(x, y);
    }
    line.set(x, mean);
    if (i > 0) line.line(x_of(points[i - 1]), y_of(points[i - 1].mean), x, mean);
  }
  lay(frame, plot, band, Style::kDim);
  lay(frame, plot, line, style);
}

void draw_restarts(Frame& frame, const Area& plot, const Range& steps, const std::vector<int64_t>& restarts) {
  for (const int64_t step : restarts) {
    const double share = steps.share_of(static_cast<double>(step));
    if (share < 0 || share > 1) continue;
    const int column = plot.column + static_cast<int>(std::lround(share * (2 * plot.columns - 1))) / 2;
    for (int row = 0; row < plot.rows; ++row) frame.set(plot.row + row, column, {U'\u250A', Style::kDim});
  }
}

void draw_value_labels(Frame& frame, const Area& plot, const Scale& scale, ValueUnit unit) {
  constexpr int kEach = 4;  // rows
  const int last = plot.rows - 1;
  std::string above;
  for (int row = 0; row <= last; ++row) {
    const bool has_label = row == last || (row % kEach == 0 && row + 2 <= last);
    const std::string text = text_of(scale.value_at(1 - static_cast<double>(row) / last), unit);
    if (!has_label || text == above) continue;
    frame.put(plot.row + row, plot.column - 1 - columns_of(text), text, Style::kDim);
    above = text;
  }
}

void draw_step_labels(Frame& frame, int row, const Area& plot, const Range& steps) {
  const std::string first = fixed(steps.low, 0), last = fixed(steps.high, 0);
  const int end = frame.put(row, plot.column, first, Style::kDim),
            column = plot.column + plot.columns - columns_of(last);
  if (column >= end + 2) frame.put(row, column, last, Style::kDim);
}

}  // namespace

std::string text_of(double value, ValueUnit unit) {
  switch (unit) {
    case ValueUnit::kNumber:
      return significant(value, 4);
    case ValueUnit::kCount:
      return human_count(value);
    case ValueUnit::kShare:
      return fixed(100 * value, 1) + " %";
    case ValueUnit::kBytes:
      return human_bytes(value);
    case ValueUnit::kSeconds:
      return value >= 1      ? significant(value, 3) + " s"
             : value >= 1e-3 ? significant(1e3 * value, 3) + " ms"
             : value >= 5e-7 ? fixed(1e6 * value, 0) + " us"
                             : "0 s";
  }
  return "";
}

bool is_flat(const Chart& chart, const ChartView& view) {
  constexpr size_t kFewest = 3;  // points
  if (chart.curves.size() != 1 || chart.curves[0].points.size() < kFewest) return false;
  const Range values = visible_part(chart.curves[0].points, view, 1).values;
  return !values.is_empty() && text_of(values.low, chart.unit) == text_of(values.high, chart.unit);
}

void draw(Frame& frame, const Area& area, const Chart& chart, const ChartView& view) {
  draw_title(frame, area, chart);
  const Area plot{area.row + 1, area.column + kLabelColumns, area.rows - 2, area.columns - kLabelColumns};
  if (area.rows < kLeastChartRows || plot.columns < 2) return;
  if (area.row < 0 || area.row + area.rows > frame.rows() || area.column + area.columns > frame.columns()) return;
  std::vector<VisiblePart> curves;
  Range steps, values;
  for (const ChartCurve& curve : chart.curves) {
    const VisiblePart& part = curves.emplace_back(visible_part(curve.points, view, 2 * plot.columns));
    steps.add(part.steps.low, part.steps.high);
    values.add(part.values.low, part.values.high);
  }
  if (values.is_empty()) return;
  const Scale scale(values, view.is_log);
  draw_restarts(frame, plot, steps, view.restarts);
  for (size_t i = 0; i < curves.size(); ++i)
    draw_curve(frame, plot, curves[i].points, steps, scale, chart.curves[i].style);
  draw_value_labels(frame, plot, scale, chart.unit);
  draw_step_labels(frame, area.row + area.rows - 1, plot, steps);
}

}  // namespace tokamak
