// Who is called slow.
#include "resilience/stragglers.h"

#include <catch2/catch.hpp>

#include "base/median.h"

using namespace tokamak;

TEST_CASE("a rank is slow after three intervals in a row, and is told once until it was not") {
  StragglerDetector detector;
  const std::vector<double> slow = {1.0, 1.01, 0.99, 1.5}, even = {1.0, 1.01, 0.99, 1.0};
  CHECK(detector.see(slow).empty());
  CHECK(detector.see(slow).empty());
  const std::vector<Straggler> found = detector.see(slow);
  REQUIRE(found.size() == 1);
  CHECK(found[0].rank == 3);
  CHECK(found[0].seconds == 1.5);
  CHECK(found[0].median == Approx(1.005));
  CHECK(detector.see(slow).empty());
  CHECK(detector.see(even).empty());
  for (int i = 0; i < 2; ++i) CHECK(detector.see(slow).empty());
  CHECK(detector.see(slow).size() == 1);
}

TEST_CASE("20 % over the median are allowed, and five deviations where the ranks differ by themselves") {
  const auto third = [](const std::vector<double>& seconds) {
    StragglerDetector detector;
    detector.see(seconds);
    detector.see(seconds);
    return detector.see(seconds).size();
  };
  CHECK(third({1, 1, 1, 1.19}) == 0);
  CHECK(third({1, 1, 1, 1.21}) == 1);
  CHECK(third({0.8, 0.9, 1.0, 1.1, 1.4}) == 0);  // MAD 0.1: up to 1.5
  CHECK(third({0.8, 0.9, 1.0, 1.1, 1.6}) == 1);
  CHECK(third({1, 9}) == 0);  // of two, neither is the normal one
}

TEST_CASE("the median of an even number is between the two in the middle") {
  CHECK(median_of({4, 1, 3, 2}) == 2.5);
  CHECK(median_of({3, 1, 2}) == 2);
  CHECK(median_of({}) == 0);
}
