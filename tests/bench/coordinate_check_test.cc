#include "bench/coordinate_check.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "plan/small_run.h"

using namespace tokamak;

namespace {

CoordinateCheck check(const RunConfig& config) {
  Backend backend = make_cpu_backend();
  return check_coordinates(config, backend, {.widths = {64, 128, 256}, .depths = {2, 4, 8}, .seeds = 3});
}

const CoordinateSlopes& row(const std::vector<CoordinateSlopes>& rows, const std::string& value) {
  return *std::find_if(rows.begin(), rows.end(), [&](const CoordinateSlopes& one) { return one.value == value; });
}

}  // namespace

TEST_CASE("with muP no activation depends on width or depth; without it, logits and residuals grow", "[large]") {
  RunConfig config = small_run();
  config.model.mup.base_hidden_size = config.model.hidden_size;
  config.model.mup.base_num_hidden_layers = config.model.num_hidden_layers;
  const CoordinateCheck good = check(config);
  for (const std::string& failure : good.failures()) FAIL_CHECK(failure);
  CHECK(row(good.by_width, "logits").of_step.at(0) == Approx(-0.5).margin(0.05));  // random values average out

  config.model.mup = {};
  const CoordinateCheck bad = check(config);
  CHECK(row(bad.by_width, "logits").of_step.at(4) > 0.3);
  CHECK(row(bad.by_depth, "residual").of_step.at(4) > 0.3);
  CHECK(!bad.failures().empty());
}

TEST_CASE("depth is checked where muP scales by it, and groups may name layers that small models lack", "[large]") {
  Backend backend = make_cpu_backend();
  RunConfig config = small_run();
  config.model.num_hidden_layers = 32;
  config.optimizer.groups = {{.match = {"model.layers.31.*", "model.norm.weight"}, .lr_scale = 0.5},
                             {.match = {"model.layers.30.*"}, .lr_scale = 2}};
  config.model.mup.base_hidden_size = config.model.hidden_size;
  const CoordinateCheckOptions brief = {.widths = {64, 128}, .depths = {2, 4}, .seeds = 1, .steps = 2};
  const CoordinateCheck width_alone = check_coordinates(config, backend, brief);
  CHECK((!width_alone.by_width.empty() && width_alone.by_depth.empty()));
  config.model.mup.base_num_hidden_layers = 2;
  CHECK(!check_coordinates(config, backend, brief).by_depth.empty());
}
