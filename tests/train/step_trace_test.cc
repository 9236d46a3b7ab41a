// The trace of a run's steps, as a file that trace viewers open: rows, spans and what they sum to.
#include "train/step_trace.h"

#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "train/toy_training.h"

using namespace tokamak;

namespace {

struct Row {
  std::map<std::string, int> spans;  // by name
  std::vector<std::pair<double, double>> times;
};

// Returns the rows, by process and by the row's name.
std::map<std::pair<int, std::string>, Row> rows_of(const nlohmann::json& trace) {
  std::map<std::pair<int, int>, std::string> names;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("name") == "thread_name") names[{event.at("pid"), event.at("tid")}] = event.at("args").at("name");
  }
  std::map<std::pair<int, std::string>, Row> rows;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const int pid = event.at("pid");
    Row& row = rows[{pid, names.at({pid, event.at("tid")})}];
    ++row.spans[event.at("name").get<std::string>()];
    const double begin = event.at("ts"), length = event.at("dur");
    row.times.emplace_back(begin, begin + length);
  }
  return rows;
}

}  // namespace

TEST_CASE("a traced run trains as one without, and leaves a trace of the steps asked for") {
  const ToyPlace place;
  RunConfig plain = place.config("plain", 2), traced = place.config("traced", 2);
  traced.metrics.trace = "2-3";
  train(2, plain);
  train(2, traced);
  CHECK(saved_state(place.checkpoint("traced", 6)).tensors == saved_state(place.checkpoint("plain", 6)).tensors);
  CHECK_FALSE(exists(place.run("plain") + "/trace-2-3.json"));

  const nlohmann::json trace = nlohmann::json::parse(read_text(place.run("traced") + "/trace-2-3.json", Kind::kBug));
  auto rows = rows_of(trace);
  const int layers = static_cast<int>(traced.model.num_hidden_layers);
  for (const int rank : {0, 1}) {
    CHECK(rows.at({rank, "steps, on the host"}).spans == std::map<std::string, int>{{"step 2", 1}, {"step 3", 1}});
    Row& compute = rows.at({rank, "stream compute"});
    CHECK(compute.spans.at("attention") == 2 * layers);  // of two steps of one micro-batch
    CHECK(compute.spans.at("gemm gate_up dw") == 2 * layers);
    CHECK(compute.spans.at("adamw") == 2 * (layers + 3));  // for each unit: the layers, norms, embedding and head
    CHECK(compute.spans.at("all_reduce") == 2);
    CHECK(rows.at({rank, "stream gather"}).spans.at("all_gather") > 2 * layers);
    CHECK(rows.at({rank, "stream reduce"}).spans.at("reduce_scatter") > 2 * layers);
    CHECK(rows.at({rank, "stream copies"}).spans.at("copy to device") == 2 * 4);
    double last = 0;
    for (const auto& [begin, end] : compute.times) {
      CHECK(last <= begin + 0.01);  // microseconds: a stream runs one call at a time
      CHECK(begin < end);
      last = end;
    }
    const auto& steps = rows.at({rank, "steps, on the host"}).times;
    CHECK(compute.times.front().first > steps.front().first);
    CHECK(compute.times.back().second < steps.back().second + 1);
  }
  CHECK(rows.count({2, "stream compute"}) == 0);
}

TEST_CASE("what share of the time each stream is busy") {
  const auto span = [](const char* stream, double begin, double end) {
    return Timeline::Entry{.kind = CallKind::kOperation, .stream = stream, .begin = begin, .end = end};
  };
  CHECK(busy_text({span("compute", 1, 2), span("gather", 1.5, 2), span("compute", 2.5, 3)}) ==
        "compute 75.0%, gather 25.0% of 2.000 s");
}
