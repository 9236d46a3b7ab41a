#include "watch/layout.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/strings.h"
#include "report/text.h"

namespace tokamak {

namespace {

constexpr int kLeastChartColumns = 38, kMostChartRows = 14;

// In the order of StartEnd.
constexpr Style kEndStyles[] = {Style::kBold,    Style::kGood, Style::kWarning, Style::kGood,
                                Style::kWarning, Style::kBad,  Style::kBad,     Style::kBad};

std::string clock_text(int64_t time) {  // "2026-01-31 12:34:56"
  std::string text = utc_text(time).substr(0, 19);
  std::replace(text.begin(), text.end(), 'T', ' ');
  return text;
}

void draw_header(Frame& frame, const Shown& shown) {
  std::string name = shown.directory;
  const auto most = static_cast<size_t>(std::max(8, frame.columns() / 2));
  if (name.size() > most) name = "..." + name.substr(name.size() - most + 3);
  int column = frame.put(0, 0, name, Style::kBold) + 2;
  if (shown.report) {
    const StartReport& last = shown.report->starts.back();
    column = frame.put(0, column, last.end_name(), kEndStyles[static_cast<size_t>(last.end)]);
    if (!last.cause.empty()) column = frame.put(0, column, fitting(": " + last.cause, frame.columns() - column));
  } else {
    column = frame.put(0, column, "no records yet", Style::kBold);
  }
  frame.put(0, column + 2, fitting(shown.notice, frame.columns() - column - 2), Style::kWarning);
}

int draw_bar(Frame& frame, int row, int columns, double share) {
  const int full = static_cast<int>(std::floor(share * columns));
  for (int i = 0; i < columns; ++i) {
    frame.set(row, i, i < full ? Cell{U'\u2588', Style::kGood} : Cell{U'\u2591', Style::kDim});
  }
  return columns > 0 ? columns + 1 : 0;
}

void draw_progress(Frame& frame, int row, const RunView& view, const RunReport& report) {
  const StartReport& last = report.starts.back();
  const double total = static_cast<double>(report.total_steps), step = static_cast<double>(view.step);
  const double share = total > 0 ? std::clamp(step / total, 0.0, 1.0) : 0;
  // As in the log: seconds of training a step in the last start, times the steps left.
  const auto steps = static_cast<double>(last.last_step - last.first_step);
  const double pace = steps > 0 ? 1e-3 * static_cast<double>(last.time[Spent::kProductive]) / steps : 0;
  FieldRow fields(frame, row, draw_bar(frame, row, frame.columns() >= 60 ? frame.columns() / 4 : 0, share));
  if (total > 0) fields.add(fixed(100 * share, 1) + " %");
  if (pace > 0 && total > 0 && !last.is_over()) {
    fields.add("eta " + human_duration(pace * std::max(0.0, total - step)), Style::kBold);
  }
  fields.add(steps_text(view.step, report.total_steps));
  const std::vector<CurvePoint>& loss = view.curves.of("loss/avg");
  if (!loss.empty() && loss.back().tokens > 0) {
    const auto tokens = static_cast<double>(loss.back().tokens);
    const bool has_all = report.total_tokens > 0 && total >= step;
    fields.add(str(human_count(tokens), has_all ? " of " + human_count(double(report.total_tokens)) : "", " tokens"));
  }
  if (pace > 0) fields.add(text_of(pace, ValueUnit::kSeconds) + " a step");
}

void draw_ranks(Frame& frame, int row, const RunView& view, const RunReport& report) {
  const StartReport& last = report.starts.back();
  FieldRow fields(frame, row);
  fields.add(str("start ", report.starts.size(), ", began ", clock_text(last.exec), " UTC"));
  if (last.ranks > 0) fields.add(str(last.ranks, " rank(s)"));
  if (view.straggler) {
    fields.add(view.straggler->text, Style::kWarning);
  } else if (last.ranks > 2) {  // the watchdog compares ranks from three on
    fields.add("no stragglers");
  }
  if (!last.hosts.empty()) fields.add("on " + last.hosts, Style::kDim);
}

void draw_account(Frame& frame, int row, const RunView& view, const RunReport& report) {
  FieldRow fields(frame, row);
  if (report.wall_clock() > 0) fields.add(str("ETTR ", fixed(100 * report.ettr(), 1), " %"));
  if (report.starts.size() > 1) fields.add(str(report.lost_steps, " steps lost in ", report.starts.size(), " starts"));
  const std::vector<CurvePoint>& saves = view.curves.of(kSaveCurve);
  fields.add(saves.empty() ? "nothing saved" : str("saved at step ", saves.back().step));
  const std::vector<CurvePoint>& memory = view.curves.of("memory/used");
  if (!memory.empty() && view.memory_planned > 0) {
    fields.add(str("memory ", human_bytes(memory.back().mean), " of ", human_bytes(view.memory_planned), " planned"));
  }
  fields.add(view.device, Style::kDim);
}

std::vector<Chart> charts_of(const Curves& curves) {
  std::vector<Chart> charts;
  for (const ChartKind& kind : kChartKinds) {
    if (curves.of(kind.name).empty()) continue;
    charts.push_back({kind.unit, {{kind.title, curves.of(kind.name), Style::kCurve}}});
    const std::vector<CurvePoint>& second = curves.of(kind.second);
    if (!second.empty()) charts.back().curves.push_back({kind.second_title, second, Style::kSecondCurve});
  }
  for (const std::string& name : curves.names()) {
    if (starts_with(name, kEvaluations) && !curves.of(name).empty())
      charts.push_back({ValueUnit::kNumber, {{name, curves.of(name), Style::kCurve}}});
  }
  return charts;
}

// Charts with constant values share the first row.
void draw_charts(Frame& frame, const Area& area, const Shown& shown, const Look& look) {
  std::vector<Chart> charts = charts_of(shown.view.curves);
  if (charts.empty() || area.rows <= 0) return;
  const int64_t trained = shown.view.step - shown.report->first_step;
  const ChartView view{look.is_log, shown.view.step - (trained >> std::clamp(look.zoom, 0, kMostZoom)),
                       shown.view.restarts};
  const auto flat =
      std::stable_partition(charts.begin(), charts.end(), [&](const Chart& chart) { return !is_flat(chart, view); });
  Area rest = area;
  if (flat != charts.end() && area.rows > 1) {
    FieldRow fields(frame, area.row);
    fields.add("steady:", Style::kDim);
    for (auto chart = flat; chart != charts.end(); ++chart) {
      const ChartCurve& curve = chart->curves.front();
      fields.add(str(curve.title, " ", text_of(curve.points.back().mean, chart->unit)), Style::kCurve);
    }
    ++rest.row, --rest.rows;
    charts.erase(flat, charts.end());
    if (charts.empty()) return;
  }
  const auto count = static_cast<int>(charts.size());
  const int across = std::clamp(rest.columns / kLeastChartColumns, 1, count);
  const int wanted_down = (count + across - 1) / across;
  const bool has_curves = rest.rows >= kLeastChartRows;
  const int down = std::min(wanted_down, has_curves ? rest.rows / kLeastChartRows : rest.rows);
  const int rows = has_curves ? std::min(kMostChartRows, rest.rows / down) : 1;
  for (int i = 0; i < std::min(count, across * down); ++i) {
    const int left = rest.columns * (i % across) / across, right = rest.columns * (i % across + 1) / across;
    const Area own{rest.row + i / across * rows, rest.column + left, rows,
                   right - left - (right < rest.columns ? 2 : 0)};
    draw(frame, own, charts[static_cast<size_t>(i)], view);
  }
}

// The newest at the bottom.
void draw_events(Frame& frame, const Area& area, const Shown& shown) {
  std::vector<EventLine> events(shown.view.events.begin(), shown.view.events.end());
  for (const FoundHang& hang : shown.hangs) {
    events.push_back({hang.time, str("hang: ", hang.headline.empty() ? hang.name : hang.headline), Style::kBad});
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const EventLine& a, const EventLine& b) { return a.time < b.time; });
  const auto count = std::min(static_cast<int>(events.size()), area.rows);
  for (int i = 0; i < count; ++i) {
    const EventLine& event = events[events.size() - static_cast<size_t>(count - i)];
    const int row = area.row + area.rows - count + i;
    const int column = frame.put(row, area.column, clock_text(event.time).substr(5), Style::kDim) + 2;
    frame.put(row, column, fitting(event.text, frame.columns() - column), event.style);
  }
}

}  // namespace

Frame draw_run(const Shown& shown, const Look& look) {
  Frame frame(look.rows, look.columns);
  if (look.rows <= 0 || look.columns <= 0) return frame;
  draw_header(frame, shown);
  if (!shown.view.account.empty()) {
    draw_progress(frame, 1, shown.view, *shown.report);
    draw_ranks(frame, 2, shown.view, *shown.report);
    draw_account(frame, 3, shown.view, *shown.report);
  }
  int end = look.rows;
  if (look.rows >= 6) frame.put(--end, 0, fitting(look.footer, look.columns), Style::kDim);
  const int events = look.rows >= 12 ? std::clamp(look.rows / 5, 3, 10) : 0;
  end -= events;
  draw_events(frame, {end, 0, events, look.columns}, shown);
  draw_charts(frame, {4, 0, end - 4 - (events > 0 ? 1 : 0), look.columns}, shown, look);
  if (look.is_ascii) frame.draw_in_ascii();
  return frame;
}

}  // namespace tokamak
