#include "train/peak.h"

#include <catch2/catch.hpp>

#include "train/toy_training.h"

using namespace tokamak;

TEST_CASE("on a CPU there is no MFU") {
  const ToyPlace place;
  RunConfig config = place.config("run");
  const auto train_until = [&](int64_t step) {
    train(1, config, {.stop_at_step = step, .backend = [] { return make_cpu_backend(); }});
  };
  train_until(1);
  CHECK(records(place.run("run"), "throughput/mfu_full").empty());
  CHECK(!last_event(place.run("run"), "ready").has("peak/flops"));
}
