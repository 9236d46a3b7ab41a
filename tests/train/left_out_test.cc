#include "train/left_out.h"

#include <catch2/catch.hpp>

using namespace tokamak;

namespace {

StageRow row_of(int64_t first, int64_t steps) {
  StageRow row;
  row.first_step = first;
  row.options.steps = steps;
  return row;
}

}  // namespace

TEST_CASE("without ranges every sample is read") {
  const LeftOutSamples none({}, row_of(1, 10));
  CHECK(none.count() == 0);
  CHECK(none.past(5) == 5);
}

TEST_CASE("ranges that overlap, touch or lie within another are one, in whatever order they were left out") {
  const std::vector<LeftOut> ranges = {
      {6, 60, 20, ""}, {3, 30, 40, ""}, {4, 40, 5, ""}, {8, 80, 10, ""}, {12, 120, 10, ""}};
  const LeftOutSamples samples(ranges, row_of(1, 20));
  CHECK(samples.count() == 70);  // 30 to 89, and 120 to 129
  CHECK(samples.past(29) == 29);
  for (const int64_t inside : {30, 45, 60, 69, 79, 80, 89}) CHECK(samples.past(inside) == 90);
  CHECK(samples.past(90) == 90);
  CHECK(samples.past(120) == 130);
}

TEST_CASE("ranges of other rows of stages, whose samples have other numbers, do not count") {
  const std::vector<LeftOut> ranges = {{10, 90, 10, ""}, {11, 0, 30, ""}, {21, 5, 7, ""}};
  const LeftOutSamples samples(ranges, row_of(11, 10));
  CHECK(samples.count() == 30);
  CHECK(samples.past(0) == 30);
  CHECK(samples.past(92) == 92);
}
