#include "monitor/jsonl.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "support/captured_log.h"

using namespace tokamak;

namespace {

std::vector<MetricRecord> read_all(const std::string& path) {
  std::vector<MetricRecord> records;
  read_records(path, [&](const MetricRecord& record) { records.push_back(record); });
  return records;
}

}  // namespace

TEST_CASE("a record is a line: counts whole, what is not finite null, an event before its step, no ETA") {
  const TempDir dir;
  JsonlFile file(dir.file("m"));
  file.write({.step = 10, .values = {count_value("tokens", 5120), {"loss/avg", std::nan("")}, {"b", 2}}, .eta = 3});
  file.write(
      {.step = 0, .event = RunEvent{"start", "now", "a \"rank\""}, .values = {count_value("memory/planned", 30)}});
  CHECK(read_text(dir.file("m"), Kind::kBug) ==
        "{\"step\":10,\"tokens\":5120,\"loss/avg\":null,\"b\":2.0}\n"
        "{\"event\":\"start\",\"step\":0,\"time\":\"now\",\"detail\":\"a \\\"rank\\\"\",\"memory/planned\":30}\n");
}

TEST_CASE("records come back in order, with their values, counts and events") {
  const TempDir dir;
  {
    JsonlFile first(dir.file("m"));
    first.write({.step = 1, .values = {count_value("tokens", 7), {"b", std::nan("")}, {"a", 0.1}}});
  }
  JsonlFile second(dir.file("m"));  // appends
  second.write({.step = 2, .event = RunEvent{"stop", "then", "signal 15"}});
  const std::vector<MetricRecord> records = read_all(dir.file("m"));
  REQUIRE(records.size() == 2);
  CHECK(records[0].step == 1);
  CHECK(!records[0].event);
  REQUIRE(records[0].values.size() == 2);  // null is no value
  CHECK((records[0].values[0].name == "tokens" && records[0].values[0].value == 7 && records[0].values[0].whole));
  CHECK((records[0].values[1].name == "a" && records[0].values[1].value == 0.1 && !records[0].values[1].whole));
  REQUIRE(records[1].event);
  CHECK((records[1].step == 2 && records[1].values.empty()));
  CHECK((records[1].event->name == "stop" && records[1].event->time == "then" &&
         records[1].event->detail == "signal 15"));
}

TEST_CASE("a reader skips lines that are no record, and a file that is not there") {
  const TempDir dir;
  CHECK(read_all(dir.file("nowhere")).empty());
  write_text_atomically(dir.file("m"),
                        "{\"step\":1,\"a\n[1]\n{\"a\":1}\n{\"step\":\"1\"}\n\n{\"step\":2,\"a\":[],\"event\":[]}\n",
                        Kind::kBug);
  const std::vector<MetricRecord> records = read_all(dir.file("m"));
  REQUIRE(records.size() == 1);
  CHECK((records[0].step == 2 && records[0].values.empty()));
}

TEST_CASE("a file that cannot be written is a warning, once; one that cannot be opened is an error") {
  log::configure(0, 1, log::Level::kWarning);
  CapturedLog captured;
  JsonlFile full("/dev/full");
  full.write({.step = 1});
  full.write({.step = 2});
  const std::string text = captured.text();
  const std::string warning = "cannot write /dev/full; no more metrics go there";
  CHECK(text.find(warning) != std::string::npos);
  CHECK(text.find(warning) == text.rfind(warning));
  const TempDir dir;
  CHECK_THROWS_AS(JsonlFile(dir.file("no/such/folder")), Error);
}
