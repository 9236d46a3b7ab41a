#include "base/clock.h"

#include <catch2/catch.hpp>

#include "base/process.h"

using namespace tokamak;

TEST_CASE("a time goes to text and back, to the millisecond, with or without a fraction") {
  CHECK(utc_text(0) == "1970-01-01T00:00:00.000Z");
  CHECK(utc_text(1769862896007) == "2026-01-31T12:34:56.007Z");
  for (const int64_t time : {int64_t{0}, int64_t{999}, int64_t{1769862896700}, unix_milliseconds()}) {
    CHECK(parse_utc(utc_text(time)) == time);
  }
  CHECK(parse_utc("2026-01-31T12:34:56Z") == 1769862896000);
  CHECK(parse_utc("2026-01-31T12:34:56.5Z") == 1769862896500);
  CHECK(parse_utc("2026-01-31T12:34:56.1239Z") == 1769862896123);
  CHECK(parse_utc(utc_timestamp()).value() / 1000 <= unix_milliseconds() / 1000);
  for (const char* wrong :
       {"", "now", "2026-01-31", "2026-01-31T12:34:56", "2026-01-31T12:34:56.5", "2026-01-31T12:34:56Zx"}) {
    INFO(wrong);
    CHECK_FALSE(parse_utc(wrong));
  }
}

TEST_CASE("a process is older later, and younger than its machine") {
  const double age = process_age();
  CHECK(age >= 0);
  CHECK(age < 1e6);
  const Stopwatch watch;
  while (process_age() < age + 0.02 && watch.seconds() < 60) {
  }
  CHECK(process_age() >= age + 0.02);
}
