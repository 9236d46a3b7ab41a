#include "monitor/live_line.h"

#include <catch2/catch.hpp>

using namespace tokamak;

TEST_CASE("the live line has a bar, the share, the step, and once it is known the pace with the ETA") {
  CHECK(live_text({.step = 0, .total_steps = 400}) == "[>                       ] 0.0%  step 0/400");
  CHECK(live_text({.step = 100, .total_steps = 400, .seconds_per_step = 0.08, .eta = 24}) ==
        "[======>                 ] 25.0%  step 100/400  12.5 steps/s  eta 0:24");
  CHECK(live_text({.step = 400, .total_steps = 400, .seconds_per_step = 31.26, .eta = 3725}) ==
        "[========================] 100.0%  step 400/400  31.3 s a step  eta 1:02:05");
  CHECK(live_text({.step = 500, .total_steps = 400}) == "[========================] 100.0%  step 500/400");
}
