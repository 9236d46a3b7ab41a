#include "train/bad_steps.h"

#include <catch2/catch.hpp>

#include "base/error.h"

using namespace tokamak;

TEST_CASE("so many bad steps in a row end the run, a good one between them does not") {
  int64_t first = 0;
  BadSteps bad(3, [&](int64_t step) {
    first = step;
    return std::string("advice");
  });
  const StepOutcome good{.step = 1};
  StepOutcome skipped{.step = 2, .applied = false};
  for (int i = 0; i < 5; ++i) {
    CHECK_NOTHROW(bad.see(skipped));
    CHECK_NOTHROW(bad.see(skipped));
    CHECK_NOTHROW(bad.see(good));
  }
  CHECK(bad.in_a_row() == 0);
  skipped.step = 7;
  CHECK_NOTHROW(bad.see(skipped));
  skipped.step = 8;
  CHECK_NOTHROW(bad.see(skipped));
  CHECK(bad.in_a_row() == 2);
  skipped.step = 9;
  try {
    bad.see(skipped);
    FAIL("the third in a row was tolerated");
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kNumerics);
    CHECK(error.hint() == "advice");
    CHECK(first == 7);
  }
}
