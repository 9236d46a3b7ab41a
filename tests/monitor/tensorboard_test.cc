#include "monitor/sink.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "base/file.h"
#include "monitor/file_size_limit.h"
#include "monitor/tfevents.h"
#include "support/temp_dir.h"

using namespace tokamak;
using Catch::Contains;

namespace {

std::string bytes_of(std::string hex) {
  hex.erase(std::remove(hex.begin(), hex.end(), ' '), hex.end());
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

const std::string kVersion = "1800000000000000 a37f4b22 0900000040fc54d941 1a0d627261696e2e4576656e743a32 eced8f9d";

// The data of the records in a file, the last of which may be cut short.
std::vector<std::string> records_of(const std::string& path) {
  const std::string file = read_text(path, Kind::kBug);
  std::vector<std::string> records;
  for (size_t at = 0; at + 12 <= file.size();) {
    uint64_t length = 0;
    std::memcpy(&length, file.data() + at, sizeof(length));
    if (at + length + 16 > file.size()) break;
    const std::string data = file.substr(at + 12, length);
    CHECK(file.substr(at, length + 16) == tfevents::record(data));
    records.push_back(data);
    at += length + 16;
  }
  return records;
}

std::vector<std::string> files_of(const TempDir& dir) {
  std::vector<std::string> paths;
  for (const std::string& name : list_directory(dir.path(), Kind::kBug)) paths.push_back(dir.file(name));
  return paths;
}

MetricRecord event(const std::string& name, int64_t step) {
  return {.step = step, .time = 1700000001000, .event = RunEvent{name, "detail of " + name, {{"hosts", "n1"}}}};
}

MetricRecord loss(int64_t step) { return {.step = step, .time = 1700000001000, .values = {{"loss", 2.5}}}; }

const std::string kScalar =  // at step 300
    "1b00000000000000 1a0d9e13 0900004040fc54d941 10ac02 2a0d 0a0b 0a046c6f7373 1500002040 f98936bb";

}  // namespace

TEST_CASE("CRC-32C of the usual nine digits") { CHECK(tfevents::crc32c("123456789") == 0xE3069283); }

TEST_CASE("records are those that TensorFlow writes, byte for byte") {
  CHECK(tfevents::file_version(1700000000.0) == bytes_of(kVersion));
  tfevents::Summary summary;
  summary.add_scalar("loss", 2.5);
  CHECK(summary.record(1700000001.0, 300) == bytes_of(kScalar));
}

TEST_CASE("a histogram is the one that protobuf's own writer makes, byte for byte") {
  tfevents::Summary summary;
  summary.add_histogram("w", -4, {2, 0, 5});
  const std::string data = bytes_of(
      "0900004040fc54d941 10ac02 2a56 0a54 0a0177 2a4f 0900000000000010c0 11000000000000f0bf 190000000000001c40"
      "3218 00000000000008c0 00000000000000c0 000000000000f0bf 3a18 0000000000000040 0000000000000000 0000000000001440");
  CHECK(summary.record(1700000001.0, 300) == tfevents::record(data));
}

TEST_CASE("a config is a session as protobuf's own writer makes it") {
  const auto written = [](const char* name, const char* text) {
    tfevents::Summary summary;
    summary.add_hparams({{name, text}}, 1700000000.0);
    return summary.record(1700000001.0, 300);
  };
  const auto expected = [](const std::string& length, const std::string& plugin) {
    return tfevents::record(bytes_of("0900004040fc54d941 10ac02 2a" + length +
                                     "0a1c 5f68706172616d735f2f73657373696f6e5f73746172745f696e666f"
                                     "420e 08011204120208012a0400000000 4a" +
                                     plugin + "2900000040fc54d941 2002"));
  };
  // In a second pair of parentheses: these are bytes, not to be printed.
  CHECK((written("lr", "0.5") ==
         expected("5d0a5b", "2b0a27 0a0768706172616d73 121c1a1a 0a0f0a026c72120911000000000000e03f")));
  CHECK(
      (written("m", "adamw") == expected("5a0a58", "280a24 0a0768706172616d73 12191a17 0a0c0a016d12071a056164616d77")));
  CHECK((written("t", "true") == expected("550a53", "230a1f 0a0768706172616d73 12141a12 0a070a017412022001")));
}

TEST_CASE("of tensors a step has the root mean squares, the ratio and the magnitudes, without those of zeros alone") {
  const TempDir dir;
  const auto board = tensorboard_sink(dir.path(), {});
  board->write(event("ready", 299));
  const TensorSummary filled{.rms = 0.5, .first = -4, .counts = {2, 0, 5}}, zeros{.zeros = 7};
  board->write({.step = 300,
                .time = 1700000001000,
                .tensors = {{"q", 7, {{"weights", filled}, {"gradients", zeros}, {"updates", filled}}}}});
  tfevents::Summary expected;
  expected.add_scalar("weights/q/rms", 0.5);
  expected.add_histogram("weights/q/log2", -4, {2, 0, 5});
  expected.add_scalar("gradients/q/rms", 0);
  expected.add_scalar("updates/q/rms", 0.5);
  expected.add_histogram("updates/q/log2", -4, {2, 0, 5});
  expected.add_scalar("updates/q/ratio", 1);
  CHECK(tfevents::record(records_of(files_of(dir).at(0)).back()) == expected.record(1700000001.0, 300));
}

TEST_CASE("a start's file: version, where it goes on from, its config and first events, then record after record") {
  const TempDir dir;
  const auto board = tensorboard_sink(dir.path(), {.config_text = "lr: 3\n", .settings = {{"lr", "3"}}});
  for (const MetricRecord& record : {event("start", 0), event("resume", 299)}) board->write(record);
  CHECK(files_of(dir).empty());  // until it has come to its first step
  board->write(event("ready", 299));
  board->write(loss(300));
  REQUIRE(files_of(dir).size() == 1);
  CHECK_THAT(files_of(dir)[0], Contains("/events.out.tfevents.1"));
  const std::vector<std::string> records = records_of(files_of(dir)[0]);
  REQUIRE(records.size() == 5);
  CHECK_THAT(records[0], Contains("brain.Event:2"));
  CHECK(records[1] == bytes_of("0900004040fc54d941 10ac02 3a020801"));  // SessionLog: START at step 300
  for (const char* text :
       {"events/start", "events/resume", "detail of resume", "| hosts | n1 |", "config", "```yaml\nlr: 3\n```"}) {
    CHECK_THAT(records[2], Contains(text));
  }
  CHECK(records[2].substr(9, 3) == bytes_of("10ab02"));  // all of them at step 299
  CHECK_THAT(records[2], Contains("_hparams_/session_start_info"));
  CHECK_THAT(records[3], Contains("events/ready"));
  CHECK(tfevents::record(records[4]) == bytes_of(kScalar));
}

TEST_CASE("what two records of a step have in common is there once") {
  const TempDir dir;
  const auto board = tensorboard_sink(dir.path(), {});
  board->write(event("ready", 299));
  board->write(loss(300));
  board->write({.step = 300, .time = 1700000001000, .values = {{"loss", 2.5}, {"accuracy", 0.5}}});
  board->write(loss(301));
  const std::vector<std::string> records = records_of(files_of(dir).at(0));
  REQUIRE(records.size() == 7);
  CHECK_THAT(records[5], Contains("accuracy") && !Contains("loss"));
  CHECK_THAT(records[6], Contains("loss"));
}

TEST_CASE("a value at the step that a rollback goes from is there again when the step has come again") {
  const TempDir dir;
  const auto board = tensorboard_sink(dir.path(), {});
  board->write(event("ready", 299));
  board->write(loss(300));
  board->write(event("rollback", 299));
  board->write(loss(300));
  const std::vector<std::string> records = records_of(files_of(dir).at(0));
  REQUIRE(records.size() == 8);
  CHECK(records[5] == bytes_of("0900004040fc54d941 10ac02 3a020801"));  // the session begins anew at step 300
  CHECK_THAT(records[6], Contains("events/rollback"));
  CHECK(tfevents::record(records[7]) == bytes_of(kScalar));
}

TEST_CASE("samples are texts by the number of their prompt, fenced so that no mark in them counts") {
  const TempDir dir;
  const auto board = tensorboard_sink(dir.path(), {});
  board->write(event("ready", 299));
  board->write({.step = 300,
                .time = 1700000001000,
                .values = {{"time/samples", 0.5}},
                .samples = {{"It was", " so"}, {"x", "````c\n``"}}});
  const std::vector<std::string> records = records_of(files_of(dir).at(0));
  REQUIRE(records.size() == 5);
  CHECK_THAT(records[4], Contains("time/samples") && Contains("samples/1") && Contains("samples/2"));
  CHECK_THAT(records[4], Contains("prompt\n\n```\nIt was\n```\n\ntext\n\n```\n so\n```\n"));
  CHECK_THAT(records[4], Contains("text\n\n`````\n````c\n``\n`````\n"));
}

TEST_CASE("the files of later starts come later in the order of names, whatever the clock says") {
  const TempDir dir;
  for (const int64_t step : {0, 5, 5}) {
    const auto board = tensorboard_sink(dir.path(), {});
    board->write(event("ready", step));
  }
  { const OutputFile of_the_future(dir.file("events.out.tfevents.4000000000.host.1.0"), Kind::kBug); }
  const auto board = tensorboard_sink(dir.path(), {});
  board->write(event("ready", 7));
  const std::vector<std::string> files = files_of(dir);
  REQUIRE(files.size() == 5);
  CHECK(records_of(files[0])[1].substr(9, 2) == bytes_of("1001"));
  CHECK(records_of(files[1])[1].substr(9, 2) == bytes_of("1006"));
  CHECK(records_of(files[2])[1].substr(9, 2) == bytes_of("1006"));
  CHECK_THAT(files[4], Contains("tfevents.4000000001."));
  CHECK(records_of(files[4])[1].substr(9, 2) == bytes_of("1008"));
}

TEST_CASE("after a write that failed the next record begins a new file; what a start says first is not lost") {
  const TempDir dir;
  const auto board = tensorboard_sink(dir.path(), {.config_text = std::string(1 << 12, ' ')});
  {
    const FileSizeLimit limit(100);
    CHECK_THROWS_AS(board->write(event("ready", 299)), Error);
    CHECK(files_of(dir).empty());
  }
  board->write(loss(300));
  REQUIRE(files_of(dir).size() == 1);
  const auto size = static_cast<rlim_t>(read_text(files_of(dir)[0], Kind::kBug).size());
  CHECK(records_of(files_of(dir)[0]).size() == 4);
  {
    const FileSizeLimit limit(size + 10);
    CHECK_THROWS_AS(board->write(loss(301)), Error);
  }
  board->write(loss(302));
  const std::vector<std::string> files = files_of(dir);
  REQUIRE(files.size() == 2);
  CHECK(records_of(files[0]).size() == 4);
  const std::vector<std::string> records = records_of(files[1]);
  REQUIRE(records.size() == 2);  // no second START: nothing was trained again
  CHECK_THAT(records[0], Contains("brain.Event:2"));
  CHECK(records[1].substr(9, 3) == bytes_of("10ae02"));
}

TEST_CASE("a text that is no UTF-8 is shown with replacements") {
  tfevents::Summary summary;
  summary.add_text("t", "a\xff");
  CHECK_THAT(summary.record(0, 0), Contains("a\xEF\xBF\xBD"));
}
