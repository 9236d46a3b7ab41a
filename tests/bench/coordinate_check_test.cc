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
  const CoordinateCheck good = check(config);
  for (const std::string& failure : good.failures()) FAIL_CHECK(failure);
  CHECK(row(good.by_width, "logits").of_step.at(0) == Approx(-0.5).margin(0.05));  // random values average out

  config.model.mup = {};
  const CoordinateCheck bad = check(config);
  CHECK(row(bad.by_width, "logits").of_step.at(4) > 0.3);
  CHECK(row(bad.by_depth, "residual").of_step.at(4) > 0.3);
  CHECK(!bad.failures().empty());
}
