#include "monitor/jsonl.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "base/file.h"
#include "monitor/file_size_limit.h"
#include "support/captured_log.h"
#include "support/temp_dir.h"

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
  file.write({.step = 10,
              .time = 1769862896007,
              .values = {count_value("tokens", 5120), {"loss/avg", std::nan("")}, {"b", 2}},
              .eta = 3});
  file.write({.step = 0,
              .event = RunEvent{"start", "a \"rank\"", {{"hosts", "n1,n2"}}},
              .values = {count_value("memory/planned", 30)}});
  CHECK(read_text(dir.file("m"), Kind::kBug) ==
        "{\"step\":10,\"time\":\"2026-01-31T12:34:56.007Z\",\"tokens\":5120,\"loss/avg\":null,\"b\":2.0}\n"
        "{\"event\":\"start\",\"step\":0,\"detail\":\"a \\\"rank\\\"\",\"hosts\":\"n1,n2\",\"memory/planned\":30}\n");
}

TEST_CASE("records come back in order, with their values, counts and events") {
  const TempDir dir;
  {
    JsonlFile first(dir.file("m"));
    first.write({.step = 1, .values = {count_value("tokens", 7), {"b", std::nan("")}, {"a", 0.1}}});
  }
  JsonlFile second(dir.file("m"));  // appends
  second.write({.step = 2, .time = 1769862896007, .event = RunEvent{"stop", "signal 15", {{"by", "Slurm"}}}});
  const std::vector<MetricRecord> records = read_all(dir.file("m"));
  REQUIRE(records.size() == 2);
  CHECK(records[0].step == 1);
  CHECK(!records[0].event);
  REQUIRE(records[0].values.size() == 2);  // null is no value
  CHECK((records[0].values[0].name == "tokens" && records[0].values[0].value == 7 && records[0].values[0].whole));
  CHECK((records[0].values[1].name == "a" && records[0].values[1].value == 0.1 && !records[0].values[1].whole));
  REQUIRE(records[1].event);
  CHECK((records[1].step == 2 && records[1].values.empty()));
  CHECK((records[1].event->name == "stop" && records[1].event->detail == "signal 15"));
  CHECK((records[1].event->text("by") == "Slurm" && records[1].event->text("where").empty()));
  CHECK((records[0].time == 0 && records[1].time == 1769862896007));
}

TEST_CASE("samples are a list beside the values, and come back as they are") {
  const TempDir dir;
  JsonlFile file(dir.file("m"));
  const std::vector<SampleText> samples = {{"It was", " a \"day\"\n"}, {"", "\x1b[0m <b>"}};
  file.write({.step = 4, .values = {{"time/samples", 0.5}}, .samples = samples});
  CHECK(read_text(dir.file("m"), Kind::kBug) ==
        "{\"step\":4,\"time/samples\":0.5,\"samples\":[{\"prompt\":\"It was\",\"text\":\" a \\\"day\\\"\\n\"},"
        "{\"prompt\":\"\",\"text\":\"\\u001b[0m <b>\"}]}\n");
  REQUIRE(read_all(dir.file("m")).size() == 1);
  CHECK(read_all(dir.file("m"))[0].samples == samples);
  CHECK(read_all(dir.file("m"))[0].values.size() == 1);
  write_text_atomically(dir.file("m"), "{\"step\":1,\"samples\":[1,{\"text\":[]}]}\n{\"step\":2,\"samples\":3}\n",
                        Kind::kBug);
  CHECK(read_all(dir.file("m"))[0].samples == std::vector<SampleText>(1));
  CHECK(read_all(dir.file("m"))[1].samples.empty());
}

TEST_CASE(
    "statistics of tensors are columns in a file of their own, extremes in the digits of an f32, and come back to those "
    "who ask for them") {
  const TensorSummary weights{.rms = 0.1, .min = -0.1f, .max = 0.3f, .zeros = 1, .first = -4, .counts = {2, 0, 5}};
  const TensorSummary none{.rms = std::nan(""), .min = INFINITY, .max = -INFINITY, .non_finite = 8};
  const TempDir dir;
  JsonlFile metrics(dir.file("metrics"));
  TensorFile file(dir.file("m"));
  const auto write = [&](const MetricRecord& record) {
    metrics.write(record);
    if (file.takes(record)) file.write(record);
  };
  write({.step = 2, .event = RunEvent{"ready", "", {{"device", "CPU"}}}, .values = {count_value("total_steps", 9)}});
  write({.step = 2, .event = RunEvent{"checkpoint", "", {}}});
  write({.step = 7,
         .values = {count_value("tokens", 5)},
         .tensors = {{"q", 8, {{"weights", weights}, {"gradients", none}, {"exp_avg", weights}}},
                     {"k", 8, {{"weights", none}, {"gradients", weights}}}}});
  const std::string weights_and_none =
      "{\"rms\":[0.1,null],\"min\":[-0.1,null],\"max\":[0.3,null],\"non_finite\":[0,8],\"zeros\":[1,0],"
      "\"log2_first\":[-4,0],\"log2_counts\":[[2,0,5],[]]}";
  const std::string none_and_weights =
      "{\"rms\":[null,0.1],\"min\":[null,-0.1],\"max\":[null,0.3],\"non_finite\":[8,0],\"zeros\":[0,1],"
      "\"log2_first\":[0,-4],\"log2_counts\":[[],[2,0,5]]}";
  const std::string weights_alone =
      "{\"rms\":[0.1,null],\"min\":[-0.1,null],\"max\":[0.3,null],\"non_finite\":[0,null],\"zeros\":[1,null],"
      "\"log2_first\":[-4,null],\"log2_counts\":[[2,0,5],null]}";
  CHECK(read_text(dir.file("m"), Kind::kBug) ==
        "{\"event\":\"ready\",\"step\":2,\"detail\":\"\"}\n"
        "{\"step\":7,\"tensors\":[\"q\",\"k\"],\"elements\":[8,8],\"weights\":" +
            weights_and_none + ",\"gradients\":" + none_and_weights + ",\"exp_avg\":" + weights_alone + "}\n");

  CHECK_THAT(read_text(dir.file("metrics"), Kind::kBug), Catch::EndsWith("}\n{\"step\":7,\"tokens\":5}\n"));

  REQUIRE(read_all(dir.file("m")).size() == 2);
  CHECK(read_all(dir.file("m"))[1].tensors.empty());
  std::vector<TensorRecord> tensors;
  read_records(
      dir.file("m"), [&](const MetricRecord& record) { tensors = record.tensors; }, ReadTensors::kYes);
  REQUIRE(tensors.size() == 2);
  CHECK((tensors[0].name == "q" && tensors[1].name == "k" && tensors[1].elements == 8));
  const TensorSummary& first = tensors[0].at("weights");
  CHECK((first.rms == 0.1 && first.counts == weights.counts && first.first == -4));
  CHECK((static_cast<float>(tensors[1].at("gradients").min) == -0.1f && tensors[1].at("gradients").zeros == 1));
  CHECK((std::isnan(tensors[0].at("gradients").rms) && std::isnan(tensors[0].at("gradients").min)));
  CHECK(tensors[1].at("weights").non_finite == 8);
  CHECK(tensors[0].at("exp_avg").rms == 0.1);
  CHECK(tensors[1].find("exp_avg") == nullptr);
}

TEST_CASE("statistics of tensors that are not as they should be are left out, and the record stays") {
  const TempDir dir;
  write_text_atomically(dir.file("m"), "{\"step\":1,\"a\":2,\"tensors\":[\"q\"],\"elements\":[]}\n", Kind::kBug);
  int64_t seen = 0;
  const auto see = [&](const MetricRecord& record) { seen += record.tensors.empty() && record.has("a") ? 1 : 0; };
  read_records(dir.file("m"), see, ReadTensors::kYes);
  CHECK(seen == 1);
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

TEST_CASE("a line of nested lists is skipped: nothing copies or prints what is 400,000 deep") {
  const TempDir dir;
  const std::string deep = std::string(400'000, '[') + std::string(400'000, ']');
  write_text_atomically(dir.file("m"), "{\"step\":1,\"x\":" + deep + ",\"y\":1}\n{\"step\":2,\"y\":1}\n", Kind::kBug);
  const std::vector<MetricRecord> records = read_all(dir.file("m"));
  REQUIRE(records.size() == 1);
  CHECK(records[0].step == 2);
}

TEST_CASE("a start removes a last line that was cut short, however long it is, and says so") {
  log::configure(0, 1, log::Level::kWarning);
  const TempDir dir;
  for (const std::string whole : {"", "{\"step\":1}\n"}) {
    for (const size_t length : {1, 4095, 4096, 4097, 20000}) {
      write_text_atomically(dir.file("m"), whole + std::string(length, '{'), Kind::kBug);
      CapturedLog captured;
      JsonlFile file(dir.file("m"));
      CHECK_THAT(captured.text(), Catch::Contains(str("removed ", length, " bytes of a last line")));
      file.write({.step = 3});
      file.write({.step = 4});
      CHECK(read_text(dir.file("m"), Kind::kBug) == whole + "{\"step\":3}\n{\"step\":4}\n");
    }
  }
}

TEST_CASE("a text that is no UTF-8 is written with replacements, not thrown back at the run") {
  const TempDir dir;
  JsonlFile file(dir.file("m"));
  file.write({.step = 1, .event = RunEvent{"end", "no file \xff", {}}});
  REQUIRE(read_all(dir.file("m")).size() == 1);
  CHECK(read_all(dir.file("m"))[0].event->detail == "no file \xEF\xBF\xBD");
}

TEST_CASE("a record that is refused, and a file that cannot be opened, are errors that name the file") {
  const TempDir dir;
  JsonlFile full(dir.file("m"));
  {
    const FileSizeLimit none(0);
    CHECK_THROWS_WITH(full.write({.step = 1}), "cannot write " + dir.file("m") + ": File too large");
  }
  CHECK_THROWS_AS(JsonlFile(dir.file("no/such/folder")), Error);
}
