#include "report/page.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "base/strings.h"
#include "support/temp_dir.h"

using namespace tokamak;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

constexpr int64_t kBegin = 1769862896000;  // 2026-01-31T12:34:56Z

// Lines of a metrics.jsonl; times are seconds since kBegin.
class Lines {
 public:
  Lines& value(double time, int64_t step, const char* name, double value) {
    return add(time, step, {{"tokens", 100 * step}, {name, value}});
  }
  Lines& event(double time, int64_t step, const char* name, const json& more = json::object()) {
    json line = {{"event", name}};
    line.update(more);
    return add(time, step, line);
  }
  Lines& sampled(double time, int64_t step, const std::string& text) {
    const json texts = {{{"prompt", "It was"}, {"text", text}}, {{"prompt", "</script>"}, {"text", "<b>"}}};
    return add(time, step, {{"time/samples", 0.5}, {"samples", texts}});
  }
  Lines& start(double time, int64_t step) {
    event(time, 0, "start", {{"exec", utc_text(kBegin + std::llround(1e3 * time))}});
    if (step > 0) event(time, step, "resume");
    return event(time, step, "ready", {{"memory/planned", 1000}});
  }

  PageRun run(int64_t most = 1000) const { return run(TempDir(), most); }
  PageRun run(const TempDir& dir, int64_t most) const {
    write_text_atomically(dir.file("metrics.jsonl"), text_, Kind::kBug);
    return read_page_run(dir.path(), {.points = most});
  }

 private:
  Lines& add(double time, int64_t step, json line) {
    line["step"] = step;
    line["time"] = utc_text(kBegin + std::llround(1e3 * time));
    text_ += line.dump() + "\n";
    return *this;
  }
  std::string text_;
};

const Series& series_called(const PageRun& run, const std::string& name) {
  for (const Series& series : run.series) {
    if (series.name == name) return series;
  }
  FAIL("no series " << name);
  return run.series.front();
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("of steps that were trained again the page has the later values, at their times") {
  Lines lines;
  lines.start(0, 0);
  for (int64_t step = 1; step <= 20; ++step) lines.value(static_cast<double>(step), step, "loss/avg", 1.0);
  lines.value(20, 20, "validation/loss", 1.5).start(100, 10);
  for (int64_t step = 11; step <= 15; ++step) {
    lines.value(static_cast<double>(100 + step), step, "loss/avg", 2.0);
  }
  const PageRun run = lines.run();
  const Series& loss = series_called(run, "loss/avg");
  REQUIRE(loss.points.size() == 15);  // steps 16 to 20 are lost
  for (const CurvePoint& point : loss.points) {
    CHECK(point.mean == (point.step > 10 ? 2.0 : 1.0));
    CHECK(point.tokens == 100 * point.step);
    CHECK(point.time == kBegin + 1000 * (point.step > 10 ? 100 + point.step : point.step));
  }
  CHECK(run.series.size() == 1);  // the validation is lost, too
  CHECK((run.report.lost_steps == 10 && run.memory_planned == 1000));
}

TEST_CASE("saves are a curve, also where they were recorded late or made again") {
  Lines lines;
  lines.start(0, 0).value(1, 1, "loss/avg", 1).value(2, 2, "loss/avg", 1).value(3, 3, "loss/avg", 1);
  lines.event(3.5, 1, "checkpoint", {{"checkpoint/stall", 0.25}, {"tokens", 100}}).value(4, 4, "loss/avg", 1);
  lines.event(5, 4, "checkpoint", {{"checkpoint/stall", 0.5}}).start(10, 1);
  lines.value(11, 2, "loss/avg", 1).value(12, 3, "loss/avg", 1).value(13, 4, "loss/avg", 1);
  lines.event(14, 4, "checkpoint", {{"checkpoint/stall", 0.75}, {"tokens", 777}});
  const PageRun run = lines.run();
  const std::vector<CurvePoint>& stall = series_called(run, "checkpoint/stall").points;
  REQUIRE(stall.size() == 2);
  CHECK((stall[0].step == 1 && stall[0].mean == 0.25 && stall[0].tokens == 100));
  CHECK((stall[1].step == 4 && stall[1].mean == 0.75 && stall[1].tokens == 777));
  CHECK(series_called(run, "loss/avg").points.size() == 4);  // the late record removed none of them
}

TEST_CASE("samples of lost steps are gone; of very many the newest are kept, up to 500 kB") {
  Lines lines;
  lines.start(0, 0).sampled(1, 5, " a").sampled(2, 10, " b").sampled(3, 15, " lost").start(10, 5);
  lines.sampled(11, 10, " <i>c</i>").value(12, 12, "loss/avg", 1);
  const PageRun run = lines.run();
  REQUIRE(run.samples.size() == 2);
  CHECK((run.samples[0].step == 5 && run.samples[1].step == 10 && run.samples_left_out == 0));
  const json data = json::parse(page_data({run}, "tokamak"))["runs"][0];
  CHECK(data["samples"][1] ==
        json{{"step", 10},
             {"texts", json::array({json::array({"It was", " <i>c</i>"}), json::array({"</script>", "<b>"})})}});
  CHECK(count_of(page_of({run}, "tokamak"), "<i>c</i>") == 0);
  const auto kept = [](int64_t count, const std::string& text) {
    Lines many;
    many.start(0, 0);
    for (int64_t step = 1; step <= count; ++step) many.sampled(static_cast<double>(step), step, text);
    const PageRun page = many.run();
    CHECK((page.samples.back().step == count && page.samples_left_out == count - std::ssize(page.samples)));
    return page.samples.size();
  };
  CHECK(kept(601, " x") == 60);
  CHECK(kept(40, std::string(50'000, 'x')) == 9);
}

TEST_CASE("events are listed with their start; of very many the latest") {
  Lines lines;
  lines.start(0, 0).value(1, 1, "loss/avg", 1).event(2, 1, "straggler", {{"seconds", 3.5}, {"detail", "rank 3"}});
  lines.start(10, 1).value(11, 2, "loss/avg", 1).event(12, 2, "stop", {{"detail", "signal 15"}});
  const PageRun run = lines.run();
  std::vector<std::string> listed;
  for (const PageEvent& event : run.events) listed.push_back(str(event.start, " ", event.record.event->name));
  CHECK(listed == std::vector<std::string>{"0 start", "0 straggler", "1 start", "1 resume", "1 stop"});
  CHECK(run.events_left_out == 0);
  for (int i = 0; i < 600; ++i) lines.event(20 + i, 2, "straggler");
  CHECK(lines.run().events.size() == 500);
  CHECK(lines.run().events_left_out == 105);
}

TEST_CASE("no text of a run can end the script that it stands in, or become markup") {
  const std::string evil = "</script><script>alert(1)</script><!-- \xff & \"quoted\"";
  Lines lines;
  lines.start(0, 0).value(1, 1, "</script>", 1);
  lines.event(2, 1, "straggler", {{"detail", "</script><script>alert(1)</script><!-- & \"quoted\""}});
  PageRun run = lines.run();
  run.name = evil;
  run.config = {{"run.name", evil, "<b>"}};
  const std::string text = page_data({run}, "tokamak");
  CHECK_THAT(text, !Contains("<"));
  const json data = json::parse(text);  // which also says that it is UTF-8
  CHECK(data["runs"][0]["events"][1]["detail"] == "</script><script>alert(1)</script><!-- & \"quoted\"");
  CHECK(data["runs"][0]["config"][0][2] == "<b>");
  CHECK(data["runs"][0]["series"].contains("</script>"));
  const std::string page = page_of({run}, "tokamak");
  CHECK(count_of(page, "<script>alert") == 0);
  CHECK(count_of(page, "</script>") == 3);  // data, library, page
  CHECK_THAT(page, Contains("<title>&lt;/script&gt;"));
}

TEST_CASE("the data of a page: curves of the same records share their axis, and buckets have a range") {
  Lines lines;
  lines.start(0, 0);
  for (int64_t step = 1; step <= 20; ++step) {
    lines.value(static_cast<double>(step), step, "loss/avg", static_cast<double>(step));
    lines.value(static_cast<double>(step), step, "optim/lr", 0.1);
  }
  lines.value(20, 20, "validation/loss", 1.5);
  const json run = json::parse(page_data({lines.run(10)}, "tokamak"))["runs"][0];
  const json& loss = run["series"]["loss/avg"];
  CHECK(loss["axis"] == run["series"]["optim/lr"]["axis"]);
  CHECK(loss["axis"] != run["series"]["validation/loss"]["axis"]);
  CHECK(run["axes"].size() == 2);
  CHECK(run["axes"][0]["step"] == json({2, 4, 6, 8, 10, 12, 14, 16, 18, 20}));
  CHECK(run["axes"][0]["tokens"][9] == 2000);
  CHECK(loss["mean"][0] == 1.5);
  CHECK((loss["low"][0] == 1 && loss["high"][0] == 2 && loss["records"] == 20));
  CHECK(!run["series"]["validation/loss"].contains("low"));
  CHECK(run["memory_planned"] == 1000);
}

TEST_CASE("a page is whole: its parts are in it, and it asks for no other file") {
  Lines lines;
  lines.start(0, 0).value(1, 1, "loss/avg", 1);
  const std::string page = page_of({lines.run()}, "tokamak 1.2.3");
  for (const char* part : {"tokamak 1.2.3", "prefers-color-scheme", "Permission is hereby granted",
                           "Dygraph.synchronize", "ETTR", "default-src 'none'"}) {
    CHECK_THAT(page, Contains(part));
  }
  for (const char* part : {"{{", "sourceMappingURL", " src=", "@import", "url("}) {
    INFO(part);
    CHECK(count_of(page.substr(0, page.find("<script type")), part) == 0);
  }
  CHECK(count_of(page, "sourceMappingURL") == 0);
}
