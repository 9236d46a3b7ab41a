// Draws one chart into a part of a frame: its title with the newest values, ticks at the left, the steps below. Curves are
// braille dots; a broken line shows where a later start began. Several points may share a column of dots: it shows their
// mean, least and greatest, so that a spike of one step is seen.
#pragma once

#include <string>
#include <vector>

#include "report/series.h"
#include "watch/curves.h"
#include "watch/frame.h"

namespace tokamak {

struct ChartCurve {
  std::string title;
  const std::vector<SeriesPoint>& points;
  Style style = Style::kCurve;
};

struct Chart {
  ValueUnit unit = ValueUnit::kNumber;
  std::vector<ChartCurve> curves;
};

struct ChartView {
  bool is_log = false;    // values on a logarithmic axis, where all are above 0
  int64_t from_step = 0;  // older ones are left out
  std::vector<int64_t> restarts{};
};

struct Area {
  int row = 0, column = 0;
  int rows = 0, columns = 0;
};

inline constexpr int kLeastChartRows = 5;  // fewer: only the title

void draw(Frame& frame, const Area& area, const Chart& chart, const ChartView& view);

// Whether its values are written alike from first to last, so that a line says all: "memory used 369 MiB".
bool is_flat(const Chart& chart, const ChartView& view);

std::string text_of(double value, ValueUnit unit);

}  // namespace tokamak
