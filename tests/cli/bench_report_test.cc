// What bench prints of its results: units, and what a share beyond a copy's rate means.
#include "cli/bench_report.h"

#include <catch2/catch.hpp>
#include <sstream>

using namespace tokamak;
using Catch::Contains;

TEST_CASE("decoding that reads weights faster than memory is told to be of a cache") {
  GenerateTimes times{.copy_rate = 12e9, .weight_bytes = 1.2e6, .decode_seconds = 25e-6};
  const auto printed = [&] {
    std::ostringstream out;
    cli::print(out, times);
    return out.str();
  };
  CHECK_THAT(printed(), Contains("12.0 GB/s copied, so 24.0 GB/s read and written"));
  CHECK_THAT(printed(), Contains("48.0 GB/s = 400 %") && Contains("a cache holds this model"));
  CHECK(cli::as_json(times)["weights_from_cache"] == true);
  times.decode_seconds = 55e-6;
  CHECK_THAT(printed(), Contains("= 182 %") && !Contains("cache"));
}
