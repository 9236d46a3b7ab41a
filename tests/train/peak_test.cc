#include "train/peak.h"

#include <catch2/catch.hpp>

#include "monitor/jsonl.h"
#include "train/toy_training.h"

using namespace tokamak;

TEST_CASE("on a CPU there is no MFU unless it is asked for; then the best peak of the run's starts counts") {
  const ToyPlace place;
  RunConfig config = place.config("run");
  const auto train_until = [&](int64_t step) {
    train(1, config, {.stop_at_step = step, .backend = [] { return make_cpu_backend(); }});
  };
  train_until(1);
  CHECK(records(place.run("run"), "throughput/mfu_full").empty());
  CHECK(!last_event(place.run("run"), "ready").has("peak/flops"));
  config.metrics.mfu = ReportMfu::kAlways;
  train_until(2);
  MetricRecord ready = last_event(place.run("run"), "ready");
  const double measured = ready.at("peak/flops");
  CHECK(measured > 0);
  for (NamedValue& one : ready.values) one.value *= one.name == "peak/flops" ? 1000 : 1;
  JsonlFile(place.run("run") + "/metrics.jsonl").write(ready);  // as of a start on an idle machine
  train_until(3);
  CHECK(last_event(place.run("run"), "ready").at("peak/flops") == 1000 * measured);
  CHECK(records(place.run("run"), "throughput/mfu_full").at(3) < 0.1);
}
