#include "report/run_report.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "monitor/jsonl.h"
#include "monitor/run_status.h"
#include "report/run_account.h"
#include "report/text.h"
#include "support/temp_dir.h"

using namespace tokamak;
using Catch::Matchers::Contains;

namespace {

constexpr int64_t kBegin = 1769862896000;  // 2026-01-31T12:34:56Z
constexpr int64_t kTokensPerStep = 100;

// Records of a run as the trainer writes them. Times are seconds since kBegin.
class Story {
 public:
  Story& start(double exec, double written) {
    add(written, 0, "start", "2 rank(s)", {count_value("ranks", 2)});
    records.back().event->texts = {{"exec", utc_text(at(exec))}, {"hosts", "n1,n2"}, {"incarnation", "i"}};
    return *this;
  }
  Story& resume(double time, int64_t step, const std::string& changed = "") {
    add(time, step, "resume");
    if (!changed.empty()) records.back().event->texts = {{"changed", changed}};
    return *this;
  }
  Story& ready(double time, int64_t step) {
    return add(
        time, step, "ready", "",
        {{"startup/world", 0.5}, {"startup/load", 1.5}, {"startup/seconds", 2}, count_value("total_steps", 100)});
  }
  Story& trained(double time, int64_t step, double seconds) {
    return add(time, step, {count_value("tokens", step * kTokensPerStep), {"time/interval", seconds}});
  }
  Story& validated(double time, int64_t step, double seconds) {
    return add(time, step, {count_value("tokens", step * kTokensPerStep), {"time/validation", seconds}});
  }
  Story& evaluated(double time, int64_t step, double seconds) { return add(time, step, {{"time/evals", seconds}}); }
  Story& sampled(double time, int64_t step, double seconds) { return add(time, step, {{"time/samples", seconds}}); }
  Story& saved(double time, int64_t step, double stall, bool committed = true) {
    return add(time, step, committed ? "checkpoint" : "checkpoint refused", "",
               {{"checkpoint/stall", stall}, {"checkpoint/seconds", 2 * stall}, count_value("checkpoint/bytes", 1000)});
  }
  Story& stop(double time, int64_t step, const std::string& why) { return add(time, step, "stop", why); }
  Story& end(double time, int64_t step, const std::string& why, int64_t code) {
    return add(time, step, "end", why, {count_value("exit_code", code)});
  }

  RunReport report(const std::vector<FoundHang>& hangs = {}) const {
    RunReport report = report_of(records, hangs);
    expect_exact_sums(report);
    return report;
  }

  static RunReport report_of(const std::vector<MetricRecord>& records, const std::vector<FoundHang>& hangs) {
    RunAccount account;
    for (const MetricRecord& record : records) account.see(record, hangs);
    RunReport report = account.report(hangs);
    report.directory = "runs/x";
    return report;
  }

  static int64_t at(double seconds) { return kBegin + std::llround(1e3 * seconds); }

  std::vector<MetricRecord> records;

 private:
  // Holds for any records. Each start's time begins at the last sign of the one before (its own exec, if that one was
  // done) and ends at its own. No time is left over.
  static void expect_exact_sums(const RunReport& report) {
    int64_t before = report.starts.front().exec, whole = 0;
    bool done = false;
    for (const StartReport& start : report.starts) {
      if (done) before = start.exec;
      CHECK(start.time.total() == start.last_sign - before);
      for (const SpentKind& one : kAllSpent) CHECK(start.time[one.kind] >= 0);
      before = start.last_sign;
      done = start.end == StartEnd::kDone;
      whole += start.time.total();
    }
    CHECK(report.wall_clock() == whole);
  }

  Story& add(double time, int64_t step, std::vector<NamedValue> values) {
    records.push_back({.step = step, .time = at(time), .values = std::move(values)});
    return *this;
  }
  Story& add(double time, int64_t step, const char* name, const std::string& detail = "",
             std::vector<NamedValue> values = {}) {
    add(time, step, std::move(values));
    records.back().event = RunEvent{name, detail, {}};
    return *this;
  }
};

// Seconds, in the order of Spent.
std::vector<double> seconds_of(const TimeSplit& time) {
  std::vector<double> seconds;
  for (const SpentKind& one : kAllSpent) seconds.push_back(1e-3 * static_cast<double>(time[one.kind]));
  return seconds;
}

std::vector<double> spent(std::vector<double> seconds) { return seconds; }

}  // namespace

TEST_CASE("a run that nothing disturbed: each second is in its place, and what no record explains is other") {
  Story story;
  story.start(0, 1).ready(2, 0).trained(12, 10, 10).validated(13, 10, 1).evaluated(16, 10, 3).saved(18, 10, 2);
  story.trained(28, 20, 10).saved(28.5, 20, 0.25, false).sampled(28.9, 20, 0.25).end(29, 20, "done", 0);
  const RunReport report = story.report();
  REQUIRE(report.starts.size() == 1);
  //                                              productive lost startup down saves validation evals samples hang other
  CHECK(seconds_of(report.time) == spent({20, 0, 2, 0, 2.25, 1, 3, 0.25, 0, 0.5}));
  CHECK(report.wall_clock() == 29000);
  CHECK(report.ettr() == Approx(20.0 / 29));
  CHECK(report.tokens == 2000);
  CHECK(report.goodput() == Approx(2000.0 / 29));
  CHECK(report.productive_rate() == Approx(100));
  CHECK((report.step == 20 && report.total_steps == 100 && report.lost_steps == 0));
  CHECK((report.saves.committed == 1 && report.saves.refused == 1 && report.saves.bytes == 1000));
  const StartReport& start = report.starts[0];
  CHECK((start.end == StartEnd::kDone && start.ranks == 2 && start.hosts == "n1,n2" && start.incarnation == "i"));
  REQUIRE(start.startup.size() == 2);
  CHECK((start.startup[1].name == "load" && start.startup[1].value == 1.5));
}

TEST_CASE("a run that is done is not down; starts of it that train nothing leave its account alone") {
  Story story;
  story.start(0, 1).ready(2, 0).trained(12, 10, 10).end(12, 10, "done", 0);
  const RunReport done = story.report();
  story.start(1000, 1001).ready(1002, 10).end(1002, 10, "done", 0);
  story.start(2000, 2001).end(2001, 0, "the model is another function", 2);
  const RunReport again = story.report();
  CHECK(again.starts.size() == 1);
  CHECK(seconds_of(again.time) == seconds_of(done.time));
  CHECK(again.ettr() == Approx(10.0 / 12));

  // It is extended: the pause before is no one's, the start's own time is.
  story.start(3000, 3001).ready(3002, 10).trained(3022, 30, 20).end(3022, 30, "done", 0);
  const RunReport more = story.report();
  REQUIRE(more.starts.size() == 2);
  //                                            productive lost startup down saves validation evals samples hang other
  CHECK(seconds_of(more.time) == spent({30, 0, 4, 0, 0, 0, 0, 0, 0, 0}));
  CHECK(more.step == 30);

  // While it goes on, an idle start is one that may yet train.
  story.start(4000, 4001).ready(4002, 30);
  CHECK(story.report().starts.size() == 3);
}

TEST_CASE("steps that a later start trains again are lost, with their time; those before its checkpoint are not") {
  Story story;
  story.start(0, 1).ready(2, 0).trained(12, 10, 10).saved(13, 10, 1).trained(23, 20, 10).trained(33, 30, 10);  // killed
  story.start(40, 41).resume(42, 10).ready(43, 10).trained(53, 20, 10);                                        // killed
  story.start(60, 61).resume(62, 10).ready(63, 10).trained(73, 20, 10).trained(83, 30, 10).saved(84, 30, 1);
  story.trained(94, 40, 10).end(94, 40, "done", 0);
  const RunReport report = story.report();
  REQUIRE(report.starts.size() == 3);
  CHECK(seconds_of(report.starts[0].time) == spent({10, 20, 2, 0, 1, 0, 0, 0, 0, 0}));
  CHECK(seconds_of(report.starts[1].time) == spent({0, 10, 3, 7, 0, 0, 0, 0, 0, 0}));
  CHECK(seconds_of(report.starts[2].time) == spent({30, 0, 3, 7, 1, 0, 0, 0, 0, 0}));
  CHECK((report.starts[0].lost_steps == 20 && report.starts[1].lost_steps == 10 && report.starts[2].lost_steps == 0));
  CHECK((report.lost_steps == 30 && report.step == 40 && report.tokens == 4000));
  CHECK((report.starts[0].end == StartEnd::kKilled && report.starts[1].end == StartEnd::kKilled));
  CHECK((report.starts[1].first_step == 10 && report.starts[1].last_step == 20));
  CHECK(report.ettr() == Approx(40.0 / 94));
}

TEST_CASE("an interval that a resume cuts in two counts for as many steps as stay") {
  Story story;
  story.start(0, 1).ready(2, 0).trained(12, 10, 10).saved(12, 6, 0);
  story.start(20, 20).resume(20, 6).ready(20, 6).trained(24, 10, 4).end(24, 10, "done", 0);
  const RunReport report = story.report();
  CHECK(seconds_of(report.starts[0].time) == spent({6, 4, 2, 0, 0, 0, 0, 0, 0, 0}));
  CHECK(report.starts[0].lost_steps == 4);
}

TEST_CASE("the tokens of a run whose batch grew are those of its records, also where a start went back behind that") {
  Story story;
  story.start(0, 0).ready(0, 0).trained(10, 10, 10).trained(20, 20, 10);
  story.records.back().values.front().value = 4000;  // 300 a step since step 10
  CHECK(story.report().tokens == 4000);
  story.start(30, 30).resume(31, 10).ready(32, 10);
  CHECK(story.report().tokens == 1000);
}

TEST_CASE("a start that went back and was killed before its first step has left the steps beyond it all the same") {
  Story story;
  story.start(0, 0).ready(0, 0).trained(10, 10, 10).start(20, 20).resume(21, 5).ready(22, 5);
  const RunReport report = story.report();
  CHECK((report.lost_steps == 5 && report.step == 5 && report.tokens == 500));
  CHECK(report.starts[1].end == StartEnd::kRunning);
  CHECK((!report.starts[0].restart && report.starts[1].restart == 12000));
  // One that was killed earlier than that has left nothing.
  Story early;
  early.start(0, 0).ready(0, 0).trained(10, 10, 10).start(20, 20).start(30, 30);
  const RunReport none = early.report();
  CHECK((none.lost_steps == 0 && none.step == 10));
  CHECK_THAT(none.starts[1].cause, Contains("before its first step"));
  CHECK(!none.starts[1].restart);
  early.ready(31, 10);
  CHECK(early.report().starts[2].restart == 21000);  // from the last training, over the start that had none
  CHECK(seconds_of(none.starts[1].time) == spent({0, 0, 0, 10, 0, 0, 0, 0, 0, 0}));
}

TEST_CASE("causes: a signal, a limit, an error, a death while stopping, silence, and a run that goes on") {
  Story story;
  story.start(0, 0)
      .ready(1, 0)
      .trained(11, 10, 10)
      .stop(12, 11, "signal 15")
      .saved(13, 11, 1)
      .end(13, 11, "stopped", 75);
  story.start(20, 20).ready(21, 11).stop(23, 13, "--stop-at-step").saved(23, 13, 0).end(23, 13, "stopped", 75);
  story.start(30, 30).ready(31, 13).trained(41, 20, 10).end(42, 20, "10 steps in a row", 7);
  story.start(50, 50).ready(51, 13).stop(53, 15, "signal 10");
  story.start(60, 60).ready(61, 13).stop(62, 14, "signal 15").end(64, 14, "its last checkpoint was refused", 4);
  story.start(70, 70).ready(71, 13);
  const RunReport report = story.report();
  std::vector<std::string> ends;
  for (const StartReport& start : report.starts) {
    ends.push_back(str(kStartEndNames[static_cast<size_t>(start.end)], ": ", start.cause));
  }
  CHECK(ends == std::vector<std::string>{"stopped: signal 15", "stopped: --stop-at-step",
                                         "failed: exit 7: 10 steps in a row", "killed: while it stopped for signal 10",
                                         "failed: exit 4: its last checkpoint was refused", "running: "});
  // Step 11 is in no interval: the tail up to the stop, but for the save, is its training.
  CHECK(seconds_of(report.starts[0].time) == spent({11, 0, 1, 0, 1, 0, 0, 0, 0, 0}));
  CHECK(report.starts[0].last_step == 11);
}

TEST_CASE("a hang lasts from the last record to the watchdog's file, which names the culprit") {
  Story story;
  story.start(0, 0).ready(1, 0).trained(11, 10, 10).saved(12, 10, 1);
  story.start(90, 90).ready(92, 10).trained(102, 20, 10).end(102, 20, "done", 0);
  const FoundHang earlier{Story::at(-5), "hang-0.txt", "of another run"};
  const FoundHang hang{Story::at(72), "hang-1.txt", "rank 1 on n2 did not arrive in all_gather"};
  const RunReport report = story.report({earlier, hang});
  CHECK(seconds_of(report.starts[0].time) == spent({10, 0, 1, 0, 1, 0, 0, 0, 60, 0}));
  CHECK(seconds_of(report.starts[1].time) == spent({10, 0, 2, 18, 0, 0, 0, 0, 0, 0}));
  CHECK((report.starts[0].end == StartEnd::kHung && report.starts[0].cause == hang.headline));
  CHECK(report.starts[1].end == StartEnd::kDone);
  CHECK(story.report({earlier}).starts[0].end == StartEnd::kKilled);
  CHECK(story.report({{Story::at(91), "hang-2.txt", "of the next start"}}).starts[0].end == StartEnd::kKilled);
}

TEST_CASE("a save beside training is committed steps later, and its stall is still found") {
  Story story;
  // The copy after step 1 stalls a second; steps 2 and 3 take a second each; the commit is recorded after them.
  story.start(0, 0).ready(0, 0).trained(1, 1, 1).trained(3, 2, 1).trained(4, 3, 1).saved(4, 1, 1).trained(5, 4, 1);
  story.end(5, 4, "done", 0);
  CHECK(seconds_of(story.report().time) == spent({4, 0, 0, 0, 1, 0, 0, 0, 0, 0}));
}

TEST_CASE("steps far slower than the others of their start are named, and stay productive") {
  Story story;
  story.start(0, 0).ready(0, 0).trained(10, 10, 10).trained(20, 20, 10).trained(35, 30, 15).trained(65, 40, 30);
  const RunReport report = story.report();
  CHECK(report.slow == 20000);  // 15 s is not beyond 1.5 times the median
  CHECK(report.time[Spent::kProductive] == 65000);
}

TEST_CASE("clocks that are set and records that are missing bend the split, but never its sum") {
  Story jump;  // back by an hour within a start, and the next process born before the last sign of this one
  jump.start(0, 1).ready(2, 0).trained(12, 10, 10).trained(-3600, 20, 10).start(-3500, -3499).ready(-3498, 20);
  jump.trained(40, 30, 10).end(41, 30, "done", 0);
  CHECK(jump.report().starts[1].time[Spent::kDown] == 0);
  Story forward;
  forward.start(0, 1).ready(2, 0).trained(12, 10, 10).trained(5000, 20, 10);
  CHECK(forward.report().time[Spent::kOther] == 4978000);
  Story no_ready;  // a full disk at the start
  no_ready.start(0, 1).trained(12, 10, 10).saved(13, 10, 1);
  CHECK(seconds_of(no_ready.report().time) == spent({10, 0, 1, 0, 1, 0, 0, 0, 0, 1}));
  Story no_start;
  no_start.start(0, 1).ready(2, 0).trained(12, 10, 10).resume(20, 5).ready(21, 5).trained(31, 15, 10);
  CHECK(no_start.report().starts.size() == 2);
  CHECK(no_start.report().lost_steps == 5);
  Story bare;
  bare.trained(0, 10, 10).trained(5, 5, 10);  // steps that go back without an event
  bare.records[0].time = bare.records[1].time = 0;
  CHECK(bare.report().lost_steps == 6);
  // Whatever subset of a run's records the disk has taken.
  Story whole;
  whole.start(0, 1).ready(2, 0).trained(12, 10, 10).validated(13, 10, 1).saved(14, 10, 1).stop(20, 15, "signal 15");
  whole.start(30, 31).resume(32, 10).ready(33, 10).trained(43, 20, 9).saved(44, 20, 1).end(45, 20, "done", 0);
  for (uint32_t kept = 1; kept < (1U << whole.records.size()); ++kept) {
    Story some;
    for (size_t i = 0; i < whole.records.size(); ++i) {
      if ((kept >> i & 1U) != 0) some.records.push_back(whole.records[i]);
    }
    some.report();
  }
}

TEST_CASE("the text and the JSON say what the report says") {
  Story story;
  story.start(0, 1).ready(2, 0).trained(12, 10, 10).saved(13, 10, 1).trained(23, 20, 10);
  story.start(30, 31).resume(31, 10, "optimizer.lr: 0.1 -> 0.2").ready(32, 10).trained(42, 20, 10);
  story.end(42, 20, "done", 0);
  RunReport report = story.report();
  report.suspects = {"n2"};
  const std::string text = text_of(report);
  for (const char* part : {"runs/x: step 20 of 100, 2.00K tokens, 2 start(s), 10 step(s) lost", "ETTR 47.6 %",
                           "goodput 48 tokens/s of wall clock, 100 of productive time", "killed: no end was recorded",
                           "restarts 1: 9.00 s on average", "world 0.50  load 1.50", "suspected hosts: n2",
                           "start 2 changed the config: optimizer.lr: 0.1 -> 0.2\n"}) {
    CHECK_THAT(text, Contains(part));
  }
  const auto json = nlohmann::json::parse(json_text({report}));
  CHECK(json["wall_clock"] == 42.0);
  CHECK(json["seconds"]["lost"] == 10.0);
  CHECK(json["starts"][1]["restart"] == 9.0);
  CHECK(json["starts"][0]["exec"] == "2026-01-31T12:34:56.000Z");
  CHECK(json["starts"][1]["end"] == "done");
  CHECK(json["suspects"][0] == "n2");
  CHECK(json["starts"][1]["changed"] == "optimizer.lr: 0.1 -> 0.2");
  const std::string both = text_of(std::vector<RunReport>{report, report});
  CHECK_THAT(both, Contains("100     2.00K     42.00 s   47.6 %         100       2     10  runs/x\n"));
  CHECK(nlohmann::json::parse(json_text({report, report}))[1] == json);
  CHECK(text_of(std::vector<RunReport>{report}) == text);
}

TEST_CASE("hang files and suspects are found in the run's directory; a directory that is no run's is an error") {
  const TempDir dir;
  const auto error_of = [&](const std::string& directory) {
    try {
      read_report(directory);
    } catch (const Error& error) {
      return str(error.exit_code(), " ", error.what());
    }
    return std::string();
  };
  CHECK(error_of(dir.file("nowhere")) == str("2 no run directory ", dir.file("nowhere")));
  CHECK(error_of(dir.path()) ==
        str("2 ", dir.path(), " is not a run: it has no metrics.jsonl, no status.json and no checkpoints/"));
  make_directories(dir.file("checkpoints"), Kind::kBug);  // as a start does first
  CHECK(error_of(dir.path()) == str("3 ", dir.path(), "/metrics.jsonl has no records"));
  write_text_atomically(dir.file("metrics.jsonl"),
                        "{\"event\":\"start\",\"step\":0,\"time\":\"2026-01-31T12:00:00.500Z\",\"detail\":\"\","
                        "\"exec\":\"2026-01-31T12:00:00.000Z\"}\n{\"step\":",
                        Kind::kBug);
  write_text_atomically(dir.file("hang-20260131T120102Z.txt"),
                        "hang, found at 2026-01-31T12:01:02Z\n\nrank 1 of n2 stands still\nmore\n", Kind::kBug);
  write_text_atomically(dir.file("hang-notes.md"), "not one", Kind::kBug);
  write_text_atomically(dir.file("suspects.txt"), "n2\n\nn1\nn2\n", Kind::kBug);
  const RunReport report = read_report(dir.path());
  REQUIRE(report.starts.size() == 1);
  CHECK(report.starts[0].end == StartEnd::kHung);
  CHECK(report.starts[0].cause == "rank 1 of n2 stands still");
  CHECK(report.wall_clock() == 62000);
  CHECK(report.suspects == std::vector<std::string>{"n1", "n2"});
}

TEST_CASE("what a run's files say is one printable line of the text each, however long") {
  Story story;
  story.start(0, 1).ready(2, 0).trained(12, 10, 10).end(13, 10, "\x1b[2Jbad\nshape\r" + std::string(600, 'x'), 4);
  story.records[1].values.insert(story.records[1].values.begin(), {"startup/\x1b]0;x\n", 1});
  RunReport report = story.report();
  report.directory = "runs/\x1b[31m\nx";
  report.suspects = {"n\n2"};
  const std::string text = text_of(report);
  CHECK_THAT(text, !Contains("\x1b") && !Contains("\r") && Contains("failed: exit 4: \\x1b[2Jbad\\nshape\\rxxx"));
  CHECK_THAT(text, Contains("\nsuspected hosts: n\\n2\n"));
  for (const std::string& line : split(text, '\n')) CHECK(line.size() < 260);
}

TEST_CASE("a last start that recorded no end is judged by its lock, status.json and the age of its last record") {
  const TempDir dir;
  Story story;
  story.start(0, 0).ready(1, 0).trained(11, 10, 10);
  JsonlFile file(dir.file("metrics.jsonl"));
  for (MetricRecord& record : story.records) {
    record.time += unix_milliseconds() - Story::at(51);
    file.write(record);
  }
  const auto judged = [&](std::optional<bool> holds_lock) {
    const StartReport start = read_report(dir.path(), holds_lock).starts.back();
    return str(start.end_name(), ": ", start.cause);
  };
  CHECK(judged(false) == "killed: no process holds its lock, no record for 0:40");
  CHECK(judged(std::nullopt) == "running: ");
  write_run_status(dir.path(), {.state = RunStatus::State::kFailed, .code = 3, .incarnation = "i"});
  CHECK(judged(false) == "failed: exit 3");
}
