// Draws one chart into a part of a frame: the newest values, an axis of values, the first and last step. Curves are
// braille dots; a broken line marks a restart. A column of several points shows their mean, least and greatest value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/curves.h"
#include "watch/frame.h"

namespace tokamak {

// How the values of a chart are written.
enum class ValueUnit { kNumber, kCount, kShare, kBytes, kSeconds };

struct ChartKind {
  const char* title;
  ValueUnit unit;
  const char* name;         // of the curve
  const char* second = "";  // a second curve in the same chart
  const char* second_title = "";
};

// In the order in which they are drawn; evaluations follow.
inline constexpr ChartKind kChartKinds[] = {
    {"loss", ValueUnit::kNumber, "loss/avg", "validation/loss", "validation"},
    {"learning rate", ValueUnit::kNumber, "optim/lr"},
    {"gradient norm", ValueUnit::kNumber, "optim/grad_norm"},
    {"tokens/s", ValueUnit::kCount, "throughput/tokens_per_sec"},
    {"MFU (full)", ValueUnit::kShare, "throughput/mfu_full"},
    {"memory used", ValueUnit::kBytes, "memory/used"},
    {"waited for data", ValueUnit::kSeconds, "time/data"},
};
inline constexpr std::string_view kEvaluations = "evals/";
inline constexpr const char* kSaveCurve = "checkpoint/bytes";  // not drawn; its last step is the last save's

struct ChartCurve {
  std::string title;
  const std::vector<CurvePoint>& points;
  Style style = Style::kCurve;
};

struct Chart {
  ValueUnit unit = ValueUnit::kNumber;
  std::vector<ChartCurve> curves;
};

struct ChartView {
  bool is_log = false;    // a logarithmic axis of values, if all are above 0
  int64_t from_step = 0;  // older steps are left out
  std::vector<int64_t> restarts{};
};

struct Area {
  int row = 0, column = 0;
  int rows = 0, columns = 0;
};

inline constexpr int kLeastChartRows = 5;  // with fewer, only the title is drawn

void draw(Frame& frame, const Area& area, const Chart& chart, const ChartView& view);

// Whether all values have the same text, so that one line is enough: "memory used 369 MiB".
bool is_flat(const Chart& chart, const ChartView& view);

std::string text_of(double value, ValueUnit unit);

}  // namespace tokamak
