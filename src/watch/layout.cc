#include "watch/layout.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/strings.h"

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

void draw_header(Frame& frame, const Shown& shown) {
  std::string name = shown.directory;
  const auto most = static_cast<size_t>(std::max(8, frame.columns() / 2));
  if (name.size() > most) name = "..." + name.substr(name.size() - most + 3);
  int column = frame.put(0, 0, name, Style::kBold) + 2;
  if (const auto& condition = shown.condition) {
    column = frame.put(0, column, condition->word(), style_of(condition->end));
    if (!condition->why.empty()) column = frame.put(0, column, ": " + condition->why);
  } else {
    column = frame.put(0, column, "no records yet", Style::kBold);
  }
  if (!shown.notice.empty()) frame.put(0, column + 2, shown.notice, Style::kWarning);
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
  int column = draw_bar(frame, row, frame.columns() >= 60 ? frame.columns() / 4 : 0, share);
  std::string text = total > 0 ? str(fixed(100 * share, 1), " %  ") : "";
  if (view.pace() > 0 && total > 0 && !(shown.condition && shown.condition->is_over())) {
    column = frame.put(row, column, text);
    column = frame.put(row, column, "eta " + human_duration(view.pace() * (total - step)) + "  ", Style::kBold);
    text.clear();
  }
  text += str("step ", view.step(), total > 0 ? str(" of ", view.total_steps()) : "");
  if (view.tokens_per_step() > 0) {
    text += str("  ", human_count(step * view.tokens_per_step()),
                total > 0 ? str(" of ", human_count(total * view.tokens_per_step())) : "", " tokens");
  }
  if (view.pace() > 0) text += str("  ", significant(view.pace(), 3), " s a step");
  frame.put(row, column, text);
}

void draw_ranks(Frame& frame, int row, const RunView& view) {
  if (view.last_start() == nullptr) return;
  const StartReport& start = view.last_start()->report();
  std::string text = str("start ", view.starts(), " of ", minute_text(start.exec), " UTC");
  if (start.ranks > 0) text += str("  ", start.ranks, " rank(s)");
  int column = frame.put(row, 0, text) + 2;
  const size_t count = view.stragglers().size();
  if (count > 0) {
    const std::string more = count > 1 ? str(" (of ", count, ")") : "";
    column = frame.put(row, column, view.stragglers().back().text + more, Style::kWarning) + 2;
  } else if (start.ranks > 2) {  // of two it is not told which is slow
    column = frame.put(row, column, "no stragglers") + 2;
  }
  if (!start.hosts.empty()) frame.put(row, column, "on " + start.hosts, Style::kDim);
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

void draw_charts(Frame& frame, const Area& area, const Shown& shown, const Look& look) {
  const std::vector<Chart> charts = charts_of(shown.view.curves());
  if (charts.empty() || area.rows <= 0) return;
  const int64_t trained = shown.view.step() - shown.view.first_step();
  const ChartView view{look.is_log, shown.view.step() - (trained >> std::clamp(look.zoom, 0, kMostZoom))};
  const auto count = static_cast<int>(charts.size());
  const int across = std::clamp(area.columns / kLeastChartColumns, 1, count);
  const int wanted_down = (count + across - 1) / across;
  const bool has_curves = area.rows >= kLeastChartRows;
  const int down = std::min(wanted_down, has_curves ? area.rows / kLeastChartRows : area.rows);
  const int rows = has_curves ? std::min(kMostChartRows, area.rows / down) : 1;
  for (int i = 0; i < std::min(count, across * down); ++i) {
    const int left = area.columns * (i % across) / across, right = area.columns * (i % across + 1) / across;
    const Area own{area.row + i / across * rows, area.column + left, rows,
                   right - left - (right < area.columns ? 2 : 0)};
    draw(frame, own, charts[static_cast<size_t>(i)], view);
  }
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
    const int column = frame.put(row, area.column, minute_text(event.time), Style::kDim);
    frame.put(row, column + 2, event.text, event.style);
  }
}

}  // namespace

Frame draw_run(const Shown& shown, const Look& look) {
  Frame frame(look.rows, look.columns);
  if (look.rows <= 0 || look.columns <= 0) return frame;
  draw_header(frame, shown);
  draw_progress(frame, 1, shown);
  draw_ranks(frame, 2, shown.view);
  if (shown.view.mfu_done() > 1) {
    frame.put(3, 0, "MFU above 100 %: the machine was busy when its peak was measured", Style::kWarning);
  }
  int end = look.rows;
  if (!look.footer.empty() && look.rows >= 6) frame.put(--end, 0, look.footer, Style::kDim);
  const int events = look.rows >= 12 ? std::clamp(look.rows / 5, 3, 10) : 0;
  end -= events;
  draw_events(frame, {end, 0, events, look.columns}, shown);
  draw_charts(frame, {4, 0, end - 4 - (events > 0 ? 1 : 0), look.columns}, shown, look);
  return frame;
}

}  // namespace tokamak
