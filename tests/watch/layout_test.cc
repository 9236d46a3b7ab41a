#include "watch/layout.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "base/strings.h"
#include "report/text.h"
#include "support/run_records.h"

using namespace tokamak;
using Catch::Contains;

namespace {

// A run of 1000 steps at step 500, a second each, whose loss falls, with a spike of one interval.
RunView falling_run(int64_t ranks = 8) {
  RunView view;
  view.see(start(1, ranks));
  view.see(ready(2, 0));
  for (int64_t step = 10; step <= 500; step += 10) {
    view.see(interval(2 + static_cast<double>(step), step, step == 250 ? 9.0 : 4 - 0.004 * static_cast<double>(step)));
  }
  view.see({.step = 500, .time = at(503), .values = {{"validation/loss", 2.25}, {"time/validation", 1}}});
  view.see(event(253, 250, "checkpoint", "", {count_value("checkpoint/bytes", 3 << 20)}));
  view.see(event(504, 500, "checkpoint", "",
                 {count_value("checkpoint/bytes", 3 << 20), {"checkpoint/seconds", 0.5}, {"checkpoint/stall", 0.125}}));
  return view;
}

Frame drawn(const RunView& view, Look look, StartEnd end = StartEnd::kRunning, const std::string& cause = "") {
  std::optional<RunReport> report;
  if (!view.account.empty()) {
    report = view.account.report();
    report->starts.back().end = end;
    report->starts.back().cause = cause;
  }
  return draw_run({.directory = "runs/mine", .view = view, .report = report}, look);
}

bool has_dots(const std::string& text) {
  return text.find("\xe2\xa0") != std::string::npos || text.find("\xe2\xa1") != std::string::npos ||
         text.find("\xe2\xa2") != std::string::npos || text.find("\xe2\xa3") != std::string::npos;
}

}  // namespace

TEST_CASE("a frame shows the run's state, its progress with the ETA, its ranks and its last events") {
  const std::string text = drawn(falling_run(), {.rows = 40, .columns = 120}).text();
  CHECK_THAT(text, Contains("runs/mine  running\n"));
  CHECK_THAT(text, Contains("50.0 %  eta 8:20  step 500 of 1000  1.00M of 2.00M tokens  1 s a step\n"));
  CHECK_THAT(text, Contains("start 1, began 2026-01-31 12:34:56 UTC  8 rank(s)  no stragglers  on n1,n2\n"));
  CHECK_THAT(text, Contains("01-31 12:34:57  start 1: 8 rank(s) on n1,n2\n"));
  CHECK_THAT(text, Contains("01-31 12:34:58  training begins after step 0, 2.5 s after exec\n"));
  CHECK_THAT(text, Contains("01-31 12:43:20  step 500 saved: 3.00 MiB in 500 ms, training waited 125 ms"));
}

TEST_CASE("charts have the newest values, the ranges of values and steps, and curves of dots") {
  const std::string text = drawn(falling_run(), {.rows = 40, .columns = 120}).text();
  CHECK_THAT(text, Contains("loss 2  validation 2.25"));
  CHECK_THAT(text, Contains("learning rate 0.0003") && Contains("gradient norm 0.5") && Contains("tokens/s 2.00K"));
  CHECK_THAT(text, Contains("\n         9 "));  // the spike of one interval
  CHECK_THAT(text, Contains("\n           10 "));
  CHECK(has_dots(text));
  const std::string none = drawn(RunView(), {.rows = 40, .columns = 120}).text();
  CHECK(none == "runs/mine  no records yet\n");
}

TEST_CASE("a falling curve falls on the screen: its dots go from the top left to the bottom right") {
  RunView view;
  view.see(start(1));
  view.see(ready(2, 0));
  for (int64_t step = 10; step <= 500; step += 10) view.see(interval(2, step, 4 - 0.004 * static_cast<double>(step)));
  Frame frame(6, 31);  // 11 columns of labels, 20 of curves, 4 rows of them
  draw(frame, {0, 0, 6, 31}, {ValueUnit::kNumber, {{"loss", view.curves.of("loss/avg")}}}, {});
  CHECK(frame.row_text(0) == "loss 2");
  CHECK_THAT(frame.row_text(1), Contains("3.96 \xe2\xa0\x88\xe2\xa0\x92\xe2\xa0\x96"));
  CHECK(frame.at(1, 11).glyph != U' ');
  CHECK(frame.at(4, 11).glyph == U' ');
  CHECK(frame.at(1, 30).glyph == U' ');
  CHECK(frame.at(4, 30).glyph != U' ');
  CHECK(frame.row_text(5) == "           10               500");
}

TEST_CASE("noise is drawn thinner than its mean, and the one value that is far from it is seen") {
  std::vector<CurvePoint> points;
  for (int64_t step = 1; step <= 4000; ++step) {
    const double value = step == 2010 ? 100.0 : 10.0 + static_cast<double>(step % 2 * 20);
    points.push_back({.step = step, .mean = value, .low = value, .high = value});
  }
  Frame frame(22, 31);
  draw(frame, {0, 0, 22, 31}, {ValueUnit::kNumber, {{"loss", points}}}, {});
  const auto dots = [&](int row) {
    int count = 0;
    for (int column = 11; column < 31; ++column) {
      const char32_t glyph = frame.at(row, column).glyph;
      if (glyph > 0x2800) count += __builtin_popcount(static_cast<unsigned>(glyph - 0x2800));
    }
    return count;
  };
  CHECK(dots(1) >= 1);  // the value of one step
  CHECK(dots(5) == 2);  // between it and the others: every second dot of its column
  // Values go from 10 to 30. The line runs through the middle, between the rows of the least and the greatest.
  CHECK(dots(17) == 78);  // 39 of 40 columns: a bucket stands where its last record does
  CHECK(dots(18) > 90);
  CHECK(dots(19) == 78);
}

TEST_CASE("a logarithmic axis has powers at equal distances; zoom leaves older steps out") {
  RunView view;
  view.see(start(1));
  view.see(ready(2, 0));
  for (int64_t step = 10; step <= 500; step += 10) {
    view.see(interval(2, step, std::exp(-0.02 * static_cast<double>(step))));
  }
  const auto middle = [&](bool is_log) {  // the row of the curve's middle
    Frame frame(22, 31);
    draw(frame, {0, 0, 22, 31}, {ValueUnit::kNumber, {{"loss", view.curves.of("loss/avg")}}}, {.is_log = is_log});
    for (int row = 1; row < 21; ++row) {
      if (frame.at(row, 21).glyph != U' ') return row;
    }
    return 0;
  };
  CHECK((middle(true) == 10 || middle(true) == 11));  // of rows 1 to 20
  CHECK(middle(false) == 20);
  CHECK_THAT(drawn(view, {.rows = 40, .columns = 120, .zoom = 1}).text(), Contains("\n           250 "));
}

TEST_CASE("a field that does not fit is left out as a whole, so that no number is cut, at any width") {
  RunView view = falling_run();
  view.see(start(600));
  view.see(event(601, 480, "resume"));
  view.see(ready(602, 480));
  const auto fields_of = [&](int columns, int row) {
    std::string text =
        drawn(view, {.rows = 24, .columns = columns}, StartEnd::kSilent, "no record for 12:34").row_text(row);
    text.erase(0, text.find_first_not_of("\u2588\u2591 "));
    std::vector<std::string> fields;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find("  ", begin), text.size());
      fields.push_back(text.substr(begin, end - begin));
      begin = end + 2;
    }
    return fields;
  };
  for (const int row : {1, 2, 3}) {
    const std::vector<std::string> all = fields_of(300, row);
    CHECK(all.size() >= 3);
    for (int columns = 10; columns < 140; ++columns) {
      INFO("row " << row << ", " << columns << " columns");
      for (const std::string& field : fields_of(columns, row)) {
        CHECK(std::find(all.begin(), all.end(), field) != all.end());
      }
    }
  }
  for (int columns = 20; columns < 60; ++columns) {  // of words, as many as fit
    const std::string head =
        drawn(view, {.rows = 24, .columns = columns}, StartEnd::kSilent, "no record for 12:34").row_text(0);
    CHECK((head.find("12:") == std::string::npos || head.ends_with("12:34")));
  }
}

TEST_CASE("a restart is marked in the charts, and says the steps that it lost and the keys that it changed") {
  RunView view = falling_run();
  view.see(start(600));
  MetricRecord resume = event(601, 250, "resume");
  resume.event->texts = {{"changed", "optimizer.lr: 0.1 -> 0.2"}};
  view.see(resume);
  view.see(ready(602, 250));
  const std::string text = drawn(view, {.rows = 40, .columns = 120}).text();
  CHECK_THAT(text, Contains("resumed from step 250, 250 steps lost; changed optimizer.lr: 0.1 -> 0.2\n"));
  CHECK_THAT(text, Contains("start 2, began 2026-01-31 12:44:55 UTC  1 rank(s)"));
  CHECK_THAT(text, Contains("  250 steps lost in 2 starts  saved at step 250"));
  CHECK(view.restarts == std::vector<int64_t>{250});
  for (int64_t step = 260; step <= 500; step += 10) view.see(interval(2, step, 1));
  Frame frame(6, 31);
  draw(frame, {0, 0, 6, 31}, {ValueUnit::kNumber, {{"loss", view.curves.of("loss/avg")}}}, {.restarts = {250}});
  int marks = 0;
  for (int row = 1; row < 5; ++row) marks += frame.at(row, 11 + 19 / 2).glyph == U'\u250A' ? 1 : 0;
  CHECK(marks >= 2);  // the curve is drawn over it
  view.see(start(900));
  view.see(event(901, 100, "resume"));
  CHECK(view.restarts == std::vector<int64_t>{100});  // those of lost steps are gone
  // A failed start reports steps that no line of values has.
  RunView failed;
  for (const MetricRecord& record : {start(1), ready(2, 0), interval(12, 10, 3), event(13, 17, "end", "rank 1 is gone"),
                                     start(20), event(21, 10, "resume")}) {
    failed.see(record);
  }
  CHECK(failed.events.back().text == "resumed from step 10, 7 steps lost");
  // One without a checkpoint begins again.
  RunView lost;
  for (const MetricRecord& record : {start(1), ready(2, 0), interval(12, 10, 3), start(20), ready(21, 0)})
    lost.see(record);
  CHECK_THAT(drawn(lost, {.rows = 40, .columns = 120}).text(), Contains("after exec; 10 steps lost"));
}

TEST_CASE("charts with constant values share a row; the others have values between the extremes") {
  const std::string text = drawn(falling_run(), {.rows = 60, .columns = 60}).text();
  CHECK_THAT(text, Contains("\nsteady:  learning rate 0.0003  gradient norm 0.5"));
  CHECK_THAT(text, Contains("\n         9 ") && Contains("\n     6.455 ") && Contains("\n         2 "));
  CHECK_THAT(text, Contains("\n           10                                            500\n"));
}

TEST_CASE("the tokens of the whole run are those that its table has, whatever the first steps trained on") {
  RunView view;
  MetricRecord begun = ready(2, 0, 60);
  begun.values.back() = count_value("total_tokens", 500'000);
  for (const MetricRecord& record : {start(1), begun, interval(12, 10, 3)}) view.see(record);
  CHECK_THAT(drawn(view, {.rows = 40, .columns = 120}).text(), Contains("  20.0K of 500K tokens"));
}

TEST_CASE("a step beyond what the last start wanted is said to be so") {
  RunView view;
  for (const MetricRecord& record : {start(1), ready(2, 0, 60), interval(12, 60, 3), start(20), ready(21, 60, 30)}) {
    view.see(record);
  }
  const std::string text = drawn(view, {.rows = 40, .columns = 120}).text();
  CHECK_THAT(text, Contains("100.0 %") && Contains("step 60, beyond its 30  120K tokens"));
  CHECK(steps_text(60, 30) == "step 60, beyond its 30");
}

TEST_CASE("a terminal without UTF-8 gets ASCII alone, in which a falling curve still falls") {
  const std::string text = drawn(falling_run(), {.rows = 40, .columns = 120, .is_ascii = true}).text();
  CHECK(std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
  CHECK_THAT(text, Contains("\n###############............... 50.0 %  eta"));
  CHECK_THAT(text, !Contains("?"));
}

TEST_CASE("stragglers of this start are named") {
  RunView view = falling_run();
  view.see(event(505, 500, "straggler", "rank 3 (on n2)", {{"seconds", 1.5}, {"median_seconds", 1}}));
  CHECK_THAT(drawn(view, {.rows = 40, .columns = 120}).row_text(2),
             Contains("straggler: rank 3 (on n2) 1.5 s a step, median 1 s, at step 500"));
  view.see(start(600, 8));
  CHECK_THAT(drawn(view, {.rows = 40, .columns = 120}).row_text(2), Contains("start 2") && Contains("no stragglers"));
}

TEST_CASE("a run that is over has no ETA and says why it ended") {
  const std::string text =
      drawn(falling_run(), {.rows = 40, .columns = 120}, StartEnd::kFailed, "exit 4: disk full").text();
  CHECK_THAT(text, Contains("runs/mine  failed: exit 4: disk full\n"));
  CHECK_THAT(text, !Contains("eta"));
}

TEST_CASE("every size has a frame of that size, from nothing to a wall, with one chart or with all") {
  RunView view = falling_run();
  for (int i = 0; i < 40; ++i) {
    view.see({.step = 500, .time = at(505), .values = {{str("evals/task", i, "/acc"), 0.01 * i}}});
  }
  for (const RunView& one : {RunView(), view}) {
    for (const int rows : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 24, 60, 200}) {
      for (const int columns : {0, 1, 2, 5, 10, 11, 12, 20, 37, 38, 39, 76, 80, 132, 400}) {
        const Frame frame = drawn(one, {.rows = rows, .columns = columns, .is_log = true, .zoom = 25, .footer = "q"});
        CHECK(frame.rows() == rows);
        CHECK(frame.columns() == columns);
      }
    }
  }
  CHECK(drawn(view, {.rows = 1, .columns = 18}).text() == "runs/mine  running\n");
  CHECK_THAT(drawn(view, {.rows = 8, .columns = 40}).text(), Contains("loss 2") && !Contains("\xe2\xa0"));  // titles
  const std::string wall = drawn(view, {.rows = 200, .columns = 400}).text();
  CHECK_THAT(wall, Contains("evals/task31/acc 0.31"));
}
