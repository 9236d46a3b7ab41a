#include "monitor/live_line.h"

#include <catch2/catch.hpp>

#include "support/captured_log.h"

using namespace tokamak;

TEST_CASE("the live line has a bar, the share, the step, and once it is known the pace with the ETA") {
  CHECK(live_text({.step = 0, .total_steps = 400}) == "[>                       ] 0.0%  step 0/400");
  CHECK(live_text({.step = 100, .total_steps = 400, .seconds_per_step = 0.08, .eta = 24}) ==
        "[======>                 ] 25.0%  step 100/400  12.5 steps/s  eta 0:24");
  CHECK(live_text({.step = 400, .total_steps = 400, .seconds_per_step = 31.26, .eta = 3725}) ==
        "[========================] 100.0%  step 400/400  31.3 s a step  eta 1:02:05");
  CHECK(live_text({.step = 500, .total_steps = 400}) == "[========================] 100.0%  step 500/400");
}

TEST_CASE(
    "where standard error is no terminal nothing is written, and the end of a run does not wait for the next frame") {
  CapturedLog captured;
  {
    LiveLine line(0, 400);
    for (int64_t step = 1; step <= 100; ++step) line.step(step);
    line.interval({.step = 100, .values = {{"time/interval", 8}}, .eta = 24});
  }
  CHECK(captured.text().empty());
}
