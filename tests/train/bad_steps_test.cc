#include "train/bad_steps.h"

#include <catch2/catch.hpp>

#include "base/error.h"

using namespace tokamak;

TEST_CASE("so many bad steps in a row end the run, a good one between them does not") {
  BadSteps bad(3);
  const StepOutcome good{.step = 1}, skipped{.step = 2, .applied = false};
  for (int i = 0; i < 5; ++i) {
    CHECK_NOTHROW(bad.see(skipped));
    CHECK_NOTHROW(bad.see(skipped));
    CHECK_NOTHROW(bad.see(good));
  }
  CHECK_NOTHROW(bad.see(skipped));
  CHECK_NOTHROW(bad.see(skipped));
  try {
    bad.see(skipped);
    FAIL("the third in a row was tolerated");
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kNumerics);
  }
}
