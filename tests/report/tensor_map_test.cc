#include "report/tensor_map.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "monitor/jsonl.h"
#include "report/page.h"
#include "support/temp_dir.h"

using namespace tokamak;
using nlohmann::json;

namespace {

float cell(const TensorMap& map, const char* kind, int64_t row, int64_t column) {
  return map.kind(kind).values[static_cast<size_t>(row * std::ssize(map.columns) + column)];
}

}  // namespace

TEST_CASE("a map of tensors is of tensors.jsonl, and of metrics.jsonl where an older version has written it") {
  const TempDir dir;
  const auto record = [](int64_t step, double rms) {
    return MetricRecord{.step = step, .tensors = {{"q", 9, {{"weights", TensorSummary{.rms = rms}}}}}};
  };
  const auto begin = [](const char* name, int64_t step) {
    return MetricRecord{.step = step, .time = 1769862896000, .event = RunEvent{name, "", {}}};
  };
  const std::string metrics = dir.file("metrics.jsonl"), tensors = dir.file("tensors.jsonl");
  {
    TensorFile older(metrics);
    older.write(begin("ready", 0));
    for (const int64_t step : {10, 20, 30}) older.write(record(step, 1));
  }
  const auto start = [&](int64_t step, std::initializer_list<int64_t> steps, double rms) {
    JsonlFile(metrics).write(begin("ready", step));
    TensorFile(tensors).write(begin("ready", step));
    for (const int64_t one : steps) TensorFile(tensors).write(record(one, rms));
  };
  const auto seen = [&] {
    const TensorMap map = read_page_run(dir.path(), {}).tensors;
    std::map<int64_t, float> values;
    for (int64_t i = 0; i < std::ssize(map.columns); ++i) {
      values[map.columns[static_cast<size_t>(i)].last] = cell(map, "weights", 0, i);
    }
    return values;
  };
  CHECK(seen() == std::map<int64_t, float>{{10, 1}, {20, 1}, {30, 1}});
  start(20, {30, 40, 50}, 2);
  CHECK(seen() == std::map<int64_t, float>{{10, 1}, {20, 1}, {30, 2}, {40, 2}, {50, 2}});
  start(40, {50}, 3);
  CHECK(seen() == std::map<int64_t, float>{{10, 1}, {20, 1}, {30, 2}, {40, 2}, {50, 3}});
  start(10, {}, 4);
  CHECK(seen() == std::map<int64_t, float>{{10, 1}});
}

TEST_CASE("a map of tensors has the course of the run, the greatest value of a bucket, and what was not finite") {
  TensorMapBuilder builder;
  const auto record = [](int64_t step, double rms, int64_t non_finite = 0) {
    const TensorSummary weights{.rms = 2}, gradients{.rms = rms, .non_finite = non_finite}, updates{.rms = rms / 100};
    return MetricRecord{
        .step = step,
        .tensors = {{"q", 9, {{"weights", weights}, {"gradients", gradients}, {"updates", updates}}},
                    {"k", 9, {{"weights", {}}, {"gradients", gradients}, {"updates", weights}}},
                    {"layers.0.attention", 40, {{"activations", TensorSummary{.rms = 1, .min = -rms, .max = 3}}}}}};
  };
  const auto event_of = [](const char* name, int64_t step) {
    return MetricRecord{.step = step, .event = RunEvent{name, "", {}}};
  };
  builder.see(event_of("ready", 0));
  for (int64_t step = 10; step <= 100; step += 10) builder.see(record(step, 1000));  // a course that is left
  builder.see(event_of("resume", 20));
  builder.see(event_of("ready", 20));
  for (int64_t step = 30; step <= 70; step += 10) builder.see(record(step, static_cast<double>(step)));
  builder.see(record(70, 7, 4));            // once more
  builder.see(event_of("checkpoint", 60));  // of a save that ended late
  builder.see(record(80, NAN));
  const TensorMap map = builder.map(4);  // 8 records
  CHECK(map.names == std::vector<std::string>{"q", "k", "layers.0.attention"});
  CHECK(map.records == 8);
  REQUIRE(map.columns.size() == 4);
  CHECK((map.columns[0].first == 10 && map.columns[0].last == 20));
  CHECK((map.columns[3].first == 70 && map.columns[3].last == 80));
  const float gradients[] = {1000, 40, 60, 7};
  for (int64_t column = 0; column < 4; ++column) {
    CHECK(cell(map, "gradients", 1, column) == gradients[column]);
    CHECK(cell(map, "weights", 0, column) == 2);
    CHECK(cell(map, "ratio", 0, column) == Approx(gradients[column] / 200));
    CHECK(std::isnan(cell(map, "ratio", 1, column)));  // of weights that are all zero
  }
  CHECK(cell(map, "activations", 2, 0) == 1000);  // the greatest magnitude
  CHECK(std::isnan(cell(map, "activations", 0, 0)));
  const auto& bad = map.kind("gradients").non_finite;
  REQUIRE(bad.size() == 2);
  CHECK((bad[1].row == 1 && bad[1].column == 3 && bad[1].elements == 4));
  CHECK(map.kind("weights").non_finite.empty());
  for (const int64_t most : {1, 3, 7, 8, 100}) CHECK(std::ssize(builder.map(most).columns) <= most);

  PageRun run{.name = "run", .report = {.starts = {{}}}, .tensors = map};
  json tensors = json::parse(page_data({run}, "tokamak"))["runs"][0]["tensors"];
  CHECK(tensors["from"] == json({10, 30, 50, 70}));
  tensors = tensors["kinds"];
  CHECK(tensors["gradients"]["rows"][0] == json({3000, 1602, 1778, 845}));
  CHECK(tensors["gradients"]["non_finite"][0] == json({0, 3, 4}));
  CHECK(tensors["ratio"]["rows"][1].is_null());
  CHECK(tensors["gradients"]["rows"][2].is_null());
  CHECK(tensors["weights"]["rows"][1] == json({-1000000, -1000000, -1000000, -1000000}));
}
