#include "monitor/chrome_trace.h"

#include <catch2/catch.hpp>

using namespace tokamak;

TEST_CASE("steps to trace are a range, one step or none, and nothing else") {
  const auto range = parse_traced_steps("10-12");
  REQUIRE(range);
  CHECK_FALSE(range->contains(9));
  CHECK(range->contains(10));
  CHECK(range->contains(12));
  CHECK_FALSE(range->contains(13));
  CHECK(parse_traced_steps("7")->contains(7));
  CHECK_FALSE(parse_traced_steps("7")->contains(8));
  CHECK_FALSE(parse_traced_steps("")->contains(0));
  for (const char* wrong : {"0", "-3", "5-", "12-10", "1-2-3", "ten", "1 - 2"}) {
    INFO(wrong);
    CHECK_FALSE(parse_traced_steps(wrong));
  }
}
