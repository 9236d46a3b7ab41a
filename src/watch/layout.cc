#include "watch/layout.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/strings.h"
#include "report/text.h"
#include "watch/panels.h"

namespace tokamak {

namespace {

constexpr int kLeastChartColumns = 38, kMostChartRows = 14;

Style style_of(StartEnd end) {
  switch (end) {
    case StartEnd::kDone:
    case StartEnd::kRunning:
      return Style::kGood;
    case StartEnd::kFailed:
    case StartEnd::kHung:
    case StartEnd::kKilled:
      return Style::kBad;
    case StartEnd::kStopped:
    case StartEnd::kSilent:
      return Style::kWarning;
    case StartEnd::kStarting:
      break;
  }
  return Style::kBold;
}

std::string minute_text(int64_t time) {
  std::string text = time > 0 ? utc_text(time).substr(5, 14) : "";
  std::replace(text.begin(), text.end(), 'T', ' ');
  return text;
}

std::string day_and_time(int64_t time) {
  std::string text = utc_text(time).substr(0, 19);
  std::replace(text.begin(), text.end(), 'T', ' ');
  return text;
}

void draw_header(Frame& frame, const Shown& shown) {
  std::string name = shown.directory;
  const auto most = static_cast<size_t>(std::max(8, frame.columns() / 2));
  if (name.size() > most) name = "..." + name.substr(name.size() - most + 3);
  int column = frame.put(0, 0, name, Style::kBold) + 2;
  if (const auto& condition = shown.condition) {
    column = frame.put(0, column, condition->word(), style_of(condition->end));
    if (!condition->why.empty()) {
      column = frame.put(0, column, fitting(": " + condition->why, frame.columns() - column));
    }
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

void draw_progress(Frame& frame, int row, const Shown& shown) {
  const RunView& view = shown.view;
  if (view.last_start() == nullptr) return;
  const double total = static_cast<double>(view.total_steps()), step = static_cast<double>(view.step());
  const double share = total > 0 ? std::clamp(step / total, 0.0, 1.0) : 0;
  FieldRow fields(frame, row, draw_bar(frame, row, frame.columns() >= 60 ? frame.columns() / 4 : 0, share));
  if (total > 0) fields.add(fixed(100 * share, 1) + " %");
  if (view.pace() > 0 && total > 0 && !(shown.condition && shown.condition->is_over())) {
    fields.add("eta " + human_duration(view.pace() * std::max(0.0, total - step)), Style::kBold);
  }
  fields.add(steps_text(view.step(), view.total_steps()));
  if (view.tokens_per_step() > 0) {
    fields.add(str(human_count(step * view.tokens_per_step()),
                   total >= step ? str(" of ", human_count(total * view.tokens_per_step())) : "", " tokens"));
  }
  if (view.pace() > 0) fields.add(text_of(view.pace(), ValueUnit::kSeconds) + " a step");
}

void draw_ranks(Frame& frame, int row, const RunView& view) {
  if (view.last_start() == nullptr) return;
  const StartReport& start = view.last_start()->report();
  FieldRow fields(frame, row);
  fields.add(str("start ", view.starts(), ", began ", day_and_time(start.exec), " UTC"));
  if (view.lost_steps() > 0) fields.add(str(view.lost_steps(), " steps lost"), Style::kWarning);
  if (start.ranks > 0) fields.add(str(start.ranks, " rank(s)"));
  const size_t count = view.stragglers().size();
  if (count > 0) {
    const std::string more = count > 1 ? str(" (of ", count, ")") : "";
    fields.add(view.stragglers().back().text + more, Style::kWarning);
  } else if (start.ranks > 2) {  // of two it is not told which is slow
    fields.add("no stragglers");
  }
  if (!start.hosts.empty()) fields.add("on " + start.hosts, Style::kDim);
}

// Where the time of all starts went, what is safe on the disk, and what the device holds.
void draw_account(Frame& frame, int row, const RunView& view) {
  if (view.account().empty()) return;
  const RunReport report = view.account().report();
  FieldRow fields(frame, row);
  if (report.wall_clock() > 0) fields.add(str("ETTR ", fixed(100 * report.ettr(), 1), " %"));
  if (view.starts() > 1) fields.add(str(report.lost_steps, " steps lost in ", report.starts.size(), " starts"));
  fields.add(view.saved_step() > 0 ? str("saved at step ", view.saved_step()) : "nothing saved");
  const std::vector<SeriesPoint>& memory = view.curves().of("memory/used");
  if (!memory.empty() && view.memory_planned() > 0) {
    fields.add(str("memory ", human_bytes(memory.back().mean), " of ", human_bytes(view.memory_planned()), " planned"));
  }
  fields.add(view.device(), Style::kDim);
}

std::vector<Chart> charts_of(const Curves& curves) {
  std::vector<Chart> charts;
  for (const ChartKind& kind : kChartKinds) {
    if (curves.of(kind.name).empty()) continue;
    charts.push_back({kind.unit, {{kind.title, curves.of(kind.name), Style::kCurve}}});
    const std::vector<SeriesPoint>& second = curves.of(kind.second);
    if (!second.empty()) charts.back().curves.push_back({kind.second_title, second, Style::kSecondCurve});
  }
  for (const std::string& name : curves.evaluations()) {
    if (!curves.of(name).empty()) charts.push_back({ValueUnit::kNumber, {{name, curves.of(name), Style::kCurve}}});
  }
  return charts;
}

// Returns the rows that are taken. Charts whose values do not move share one row.
int draw_charts(Frame& frame, const Area& area, const Shown& shown, const Look& look) {
  std::vector<Chart> charts = charts_of(shown.view.curves());
  if (charts.empty() || area.rows <= 0) return 0;
  const int64_t trained = shown.view.step() - shown.view.first_step();
  const ChartView view{look.is_log, shown.view.step() - (trained >> std::clamp(look.zoom, 0, kMostZoom)),
                       shown.view.restarts()};
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
    if (charts.empty()) return 1;
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
  return rest.row - area.row + down * rows;
}

// By time, the newest at the bottom.
void draw_events(Frame& frame, const Area& area, const Shown& shown) {
  std::vector<EventLine> events(shown.view.events().begin(), shown.view.events().end());
  for (const FoundHang& hang : shown.hangs) {
    events.push_back({hang.time, str("hang: ", hang.headline.empty() ? hang.name : hang.headline), Style::kBad});
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const EventLine& a, const EventLine& b) { return a.time < b.time; });
  const auto count = std::min(static_cast<int>(events.size()), area.rows);
  for (int i = 0; i < count; ++i) {
    const EventLine& event = events[events.size() - static_cast<size_t>(count - i)];
    const int row = area.row + area.rows - count + i;
    const int column = frame.put(row, area.column, minute_text(event.time), Style::kDim) + 2;
    frame.put(row, column, fitting(event.text, frame.columns() - column), event.style);
  }
}

}  // namespace

Frame draw_run(const Shown& shown, const Look& look) {
  Frame frame(look.rows, look.columns);
  if (look.rows <= 0 || look.columns <= 0) return frame;
  draw_header(frame, shown);
  draw_progress(frame, 1, shown);
  draw_ranks(frame, 2, shown.view);
  draw_account(frame, 3, shown.view);
  int end = look.rows;
  if (look.rows >= 6) frame.put(--end, 0, fitting(look.footer, look.columns), Style::kDim);
  const int events = look.rows >= 12 ? std::clamp(look.rows / 5, 3, 10) : 0;
  end -= events;
  draw_events(frame, {end, 0, events, look.columns}, shown);
  Area middle{4, 0, end - 4 - (events > 0 ? 1 : 0), look.columns};
  const int taken = draw_charts(frame, middle, shown, look) + 1;
  middle.row += taken, middle.rows -= taken;
  draw_panels(frame, middle, shown.view, shown.log);
  if (look.is_ascii) frame.draw_in_ascii();
  return frame;
}

}  // namespace tokamak
