#include "watch/chart.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/strings.h"
#include "watch/braille.h"

namespace tokamak {

namespace {

constexpr int kLabelColumns = 11;

struct Range {
  double low = 0, high = 0;
  double share_of(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

struct VisiblePart {
  int64_t first_step = 0, last_step = 0;
  std::vector<SeriesPoint> points;
};

VisiblePart visible_part(const std::vector<SeriesPoint>& points, const ChartView& view, int dots) {
  const auto begin = std::lower_bound(points.begin(), points.end(), view.from_step,
                                      [](const SeriesPoint& point, int64_t step) { return point.step < step; });
  if (begin == points.end()) return {};
  return {begin->step, points.back().step, downsample({begin, points.end()}, dots)};
}

// Of the values of all curves; nothing where there are none.
std::optional<Range> value_range(const std::vector<VisiblePart>& curves) {
  std::optional<Range> range;
  for (const VisiblePart& curve : curves) {
    for (const SeriesPoint& point : curve.points) {
      if (!range) range = {point.low, point.high};
      range->low = std::min(range->low, point.low);
      range->high = std::max(range->high, point.high);
    }
  }
  return range;
}

Range step_range(const std::vector<VisiblePart>& curves) {
  Range range{HUGE_VAL, -HUGE_VAL};
  for (const VisiblePart& curve : curves) {
    if (curve.points.empty()) continue;
    range.low = std::min(range.low, static_cast<double>(curve.first_step));
    range.high = std::max(range.high, static_cast<double>(curve.last_step));
  }
  return range;
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

// Where a value lies between the least and the greatest, from 0 to 1.
class Scale {
 public:
  Scale(Range range, bool is_log) : is_log_(is_log && range.low > 0), range_{at(range.low), at(range.high)} {}
  double share_of(double value) const { return range_.share_of(at(value)); }
  bool is_log() const { return is_log_; }

 private:
  double at(double value) const { return is_log_ ? std::log(value) : value; }
  bool is_log_;
  Range range_;
};

// Over what is there, in its own style.
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

// The mean as a line of all dots; from the least to the greatest every second dot, so that noise does not hide the line.
void draw_curve(Frame& frame, const Area& plot, const std::vector<SeriesPoint>& points, const Range& steps,
                const Scale& scale, Style style) {
  BrailleCanvas line(plot.columns, plot.rows), band(plot.columns, plot.rows);
  const auto x_of = [&](const SeriesPoint& point) {
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

// Where a later start began; curves are drawn over it.
void draw_restarts(Frame& frame, const Area& plot, const Range& steps, const std::vector<int64_t>& restarts) {
  for (const int64_t step : restarts) {
    const double share = steps.share_of(static_cast<double>(step));
    if (share < 0 || share > 1) continue;
    const int column = plot.column + static_cast<int>(std::lround(share * (2 * plot.columns - 1))) / 2;
    for (int row = 0; row < plot.rows; ++row) frame.set(plot.row + row, column, {U'\u250A', Style::kDim});
  }
}

// Round values within a range, at most so many: 1, 2 and 5 times a power of ten, of bytes powers of two.
std::vector<double> ticks(const Range& range, bool is_log, ValueUnit unit, int most) {
  std::vector<double> values;
  if (most < 1 || !(range.high > range.low)) return values;
  if (is_log) {
    for (double power = std::pow(10, std::floor(std::log10(range.low))); power < range.high; power *= 10) {
      for (const double factor : {1, 2, 5}) {
        if (factor * power > range.low && factor * power < range.high) values.push_back(factor * power);
      }
    }
    const size_t each = (values.size() + static_cast<size_t>(most) - 1) / static_cast<size_t>(most);
    std::vector<double> chosen;
    for (size_t i = 0; i < values.size(); i += each) chosen.push_back(values[i]);
    return chosen;
  }
  const double least = (range.high - range.low) / (most + 1);
  double step =
      unit == ValueUnit::kBytes ? std::exp2(std::ceil(std::log2(least))) : std::pow(10, std::floor(std::log10(least)));
  if (unit != ValueUnit::kBytes) {
    const double power = step;
    for (const double factor : {1, 2, 5, 10}) {
      step = factor * power;
      if (step >= least) break;
    }
  }
  for (double i = std::floor(range.low / step) + 1; i * step < range.high; ++i) values.push_back(i * step);
  return values;
}

// The extremes, and round values between them where there is room.
void draw_value_labels(Frame& frame, const Area& plot, const Range& values, const Scale& scale, ValueUnit unit) {
  std::vector<std::string> labels(static_cast<size_t>(plot.rows));
  labels.front() = text_of(values.high, unit);
  labels.back() = text_of(values.low, unit);
  for (const double value : ticks(values, scale.is_log(), unit, (plot.rows - 2) / 3)) {
    const auto row = static_cast<size_t>(std::lround((1 - scale.share_of(value)) * (plot.rows - 1)));
    if (row < 2 || row + 2 >= labels.size() || !labels[row].empty() || !labels[row - 1].empty()) continue;
    labels[row] = text_of(value, unit);
  }
  for (int row = 0; row < plot.rows; ++row) {
    const std::string& text = labels[static_cast<size_t>(row)];
    frame.put(plot.row + row, plot.column - 1 - columns_of(text), text, Style::kDim);
  }
}

void draw_step_labels(Frame& frame, const Area& area, const Area& plot, const Range& steps) {
  const int row = area.row + area.rows - 1, end = plot.column + plot.columns;
  const std::string first = fixed(steps.low, 0), last = fixed(steps.high, 0);
  int free = frame.put(row, plot.column, first, Style::kDim) + 2;
  if (free + columns_of(last) > end) return;
  const int last_column = end - columns_of(last);
  frame.put(row, last_column, last, Style::kDim);
  for (const double step : ticks(steps, false, ValueUnit::kCount, plot.columns / 16)) {
    const std::string text = fixed(step, 0);
    const int middle = plot.column + static_cast<int>(std::lround(steps.share_of(step) * (plot.columns - 1)));
    const int column = middle - columns_of(text) / 2;
    if (column < free || column + columns_of(text) + 2 > last_column) continue;
    free = frame.put(row, column, text, Style::kDim) + 2;
  }
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
  constexpr size_t kFewest = 3;  // points of a run that has hardly begun say nothing
  std::vector<VisiblePart> curves;
  for (const ChartCurve& curve : chart.curves) curves.push_back(visible_part(curve.points, view, 1));
  if (chart.curves.size() != 1 || chart.curves[0].points.size() < kFewest) return false;
  const std::optional<Range> values = value_range(curves);
  return values && text_of(values->low, chart.unit) == text_of(values->high, chart.unit);
}

void draw(Frame& frame, const Area& area, const Chart& chart, const ChartView& view) {
  draw_title(frame, area, chart);
  const Area plot{area.row + 1, area.column + kLabelColumns, area.rows - 2, area.columns - kLabelColumns};
  if (area.rows < kLeastChartRows || plot.columns < 2) return;
  if (area.row < 0 || area.row + area.rows > frame.rows() || area.column + area.columns > frame.columns()) return;
  std::vector<VisiblePart> curves;
  for (const ChartCurve& curve : chart.curves) curves.push_back(visible_part(curve.points, view, 2 * plot.columns));
  const std::optional<Range> values = value_range(curves);
  if (!values) return;
  const Range steps = step_range(curves);
  const Scale scale(*values, view.is_log);
  draw_restarts(frame, plot, steps, view.restarts);
  for (size_t i = 0; i < curves.size(); ++i)
    draw_curve(frame, plot, curves[i].points, steps, scale, chart.curves[i].style);
  draw_value_labels(frame, plot, *values, scale, chart.unit);
  draw_step_labels(frame, area, plot, steps);
}

}  // namespace tokamak
