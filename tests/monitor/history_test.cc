#include "monitor/history.h"

#include <catch2/catch.hpp>

#include "monitor/jsonl.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

// "step:loss" of the history's training, "step:v" of its validations.
std::string course(const std::vector<MetricRecord>& records) {
  std::string text;
  for (const MetricRecord& record : records) {
    text += str(text.empty() ? "" : " ", record.step, ":",
                record.has("loss/avg") ? str(record.at("loss/avg")) : str("v", record.at("validation/loss")));
  }
  return text;
}

MetricRecord trained(int64_t step, double loss) {
  return {.step = step, .values = {count_value("tokens", 7 * step), {"loss/avg", loss}}};
}
MetricRecord validated(int64_t step, double loss) {
  return {.step = step, .values = {count_value("tokens", 7 * step), {"validation/loss", loss}}};
}
MetricRecord event(const char* name, int64_t step) { return {.step = step, .event = RunEvent{name, "", {}}}; }

std::string course_of(const std::vector<MetricRecord>& records) {
  const TempDir dir;
  JsonlFile file(dir.file("m"));
  for (const MetricRecord& record : records) file.write(record);
  return course(read_history(dir.file("m")));
}

}  // namespace

TEST_CASE("a run that went on without going back has all of its records; values of one step stay side by side") {
  CHECK(course_of({}).empty());
  CHECK(course_of({event("start", 0), event("ready", 0), trained(1, 5), trained(2, 4), validated(2, 9),
                   event("checkpoint", 2), event("start", 0), event("resume", 2), event("ready", 2), trained(3, 3)}) ==
        "1:5 2:4 2:v9 3:3");
}

TEST_CASE("of steps trained again the later records count, and none of what was left behind and not reached again") {
  const std::vector<MetricRecord> records = {event("ready", 0), trained(1, 5), trained(2, 4),    validated(2, 9),
                                             trained(3, 3),     trained(4, 2), event("start", 0)};
  const auto then = [&](std::vector<MetricRecord> more) {
    std::vector<MetricRecord> all = records;
    all.insert(all.end(), more.begin(), more.end());
    return course_of(all);
  };
  CHECK(then({}) == "1:5 2:4 2:v9 3:3 4:2");  // a start that has loaded nothing yet has left nothing
  CHECK(then({event("resume", 1)}) == "1:5");
  CHECK(then({event("ready", 0), trained(1, 50)}) == "1:50");  // checkpoint.load: none
  CHECK(then({event("resume", 1), trained(2, 40), trained(3, 30)}) == "1:5 2:40 3:30");
  CHECK(then({event("rollback", 2)}) == "1:5 2:4 2:v9");  // within a start
}

TEST_CASE("where the disk had no room for the word of a resume, steps that go back say it too") {
  CHECK(course_of({trained(1, 5), trained(2, 4), trained(3, 3), trained(2, 40)}) == "1:5 2:40");
  CHECK(course_of({trained(2, 4), validated(2, 9), validated(2, 8)}) == "2:4 2:v8");
}
