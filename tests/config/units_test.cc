#include "config/units.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace tokamak;

TEST_CASE("counts are read in the units that people write") {
  const auto [text, value] = GENERATE(table<std::string, int64_t>({
      {"0", 0},
      {"4096", 4096},
      {"-1", -1},
      {"+7", 7},
      {" 12 ", 12},
      {"1_000_000", 1000000},
      {"250B", 250000000000},
      {"250 B", 250000000000},
      {"1.5M", 1500000},
      {"2k", 2000},
      {"2K", 2000},
      {"64Ki", 65536},
      {"1.5Ki", 1536},
      {"8Mi", 8388608},
      {"1Gi", 1073741824},
      {"1.4T", 1400000000000},
      {"1e9", 1000000000},
      {"2.5e3", 2500},
      {"5000e-3", 5},
      {"1.000", 1},
      {"9223372036854775807", std::numeric_limits<int64_t>::max()},
      {"9007199254740993", 9007199254740993},  // not a double
  }));
  CAPTURE(text);
  const Parsed<int64_t> parsed = parse_count(text);
  REQUIRE(parsed.value);
  CHECK(*parsed.value == value);
  CHECK(parse_count(print_count(value)).value == value);
  CHECK(parse_count(print_human_count(value)).value == value);
}

TEST_CASE("counts that are not whole, too large or in no unit are refused with the reason") {
  const auto [text, reason] = GENERATE(table<std::string, std::string>({
      {"1.5", "whole"},
      {"0.3Ki", "whole"},
      {"1e-1", "whole"},
      {"1.2345K", "whole"},
      {"9223372036854775808", "out of range"},
      {"10000000000B", "out of range"},
      {"9000000Ti", "out of range"},
      {"1e30", "out of range"},
      {"1e999999999999999999999", "out of range"},
      {"5 bananas", "'bananas', which is not a unit"},
      {"5m", "'m', which is not a unit"},
      {"5%", "'%', which is not a unit"},
      {"1__0", "not a unit"},
      {"1.2.3", "not a unit"},
      {"0x10", "not a unit"},
      {"", "must be a whole number"},
      {"abc", "must be a whole number"},
      {"-", "must be a whole number"},
      {".", "must be a whole number"},
      {"nan", "must be a whole number"},
  }));
  CAPTURE(text);
  const Parsed<int64_t> parsed = parse_count(text);
  CHECK_FALSE(parsed.value);
  CHECK_THAT(parsed.rule, Catch::Contains(reason));
}

TEST_CASE("numbers are read to the nearest double, percent included") {
  const auto [text, value] = GENERATE(table<std::string, double>({
      {"0.1", 0.1},
      {"3e-4", 3e-4},
      {"1.5E+3", 1500.0},
      {".5", 0.5},
      {"2.", 2.0},
      {"-0.25", -0.25},
      {"5%", 0.05},
      {"0.1%", 0.001},
      {"0.7 %", 0.007},
      {"1e-2%", 1e-4},
      {"100000000000000000000000", 1e23},
  }));
  CAPTURE(text);
  const Parsed<double> parsed = parse_number(text);
  REQUIRE(parsed.value);
  CHECK(*parsed.value == value);
}

TEST_CASE("what is no finite number is refused") {
  for (const char* text : {"", "abc", "nan", ".nan", "inf", "-.inf", "1e400", "1e", "0x1p3", "5 %%", "1K", "1,5"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number(text).value);
  }
}

TEST_CASE("numbers print as people write them") {
  CHECK(print_number(3e-4) == "0.0003");
  CHECK(print_number(500000) == "500000");
  CHECK(print_number(1e-8) == "1e-8");
  CHECK(print_number(1.5e20) == "1.5e20");
  CHECK(print_number(0.1 + 0.2) == "0.30000000000000004");
  CHECK(print_number(0) == "0");
  CHECK(print_human_count(250000000000) == "250B");
  CHECK(print_human_count(1500000000) == "1500M");
  CHECK(print_human_count(1234) == "1234");
}

TEST_CASE("lengths of training are read in each of their units") {
  const auto [text, value] = GENERATE(table<std::string, TrainingLength>({
      {"2000", TrainingLength::steps(2000)},
      {"2000 steps", TrainingLength::steps(2000)},
      {"1 step", TrainingLength::steps(1)},
      {"2K steps", TrainingLength::steps(2000)},
      {"0", TrainingLength::steps(0)},
      {"1B tokens", TrainingLength::tokens(1e9)},
      {"64Ki tokens", TrainingLength::tokens(65536)},
      {"1Btokens", TrainingLength::tokens(1e9)},
      {"5%", TrainingLength::fraction(0.05)},
      {"0.1 %", TrainingLength::fraction(0.001)},
      {"90min", TrainingLength::seconds(5400)},
      {"2h", TrainingLength::seconds(7200)},
      {"1.5 hours", TrainingLength::seconds(5400)},
      {"30s", TrainingLength::seconds(30)},
      {"1d", TrainingLength::seconds(86400)},
      {"none", TrainingLength::none()},
  }));
  CAPTURE(text);
  const Parsed<TrainingLength> parsed = parse_training_length(text);
  REQUIRE(parsed.value);
  CHECK(*parsed.value == value);
  CHECK(parse_training_length(print_training_length(value)).value == value);
}

TEST_CASE("lengths print in the unit they were written in") {
  CHECK(print_training_length(TrainingLength::steps(2000)) == "2000 steps");
  CHECK(print_training_length(TrainingLength::tokens(1e9)) == "1B tokens");
  CHECK(print_training_length(TrainingLength::fraction(0.05)) == "5%");
  CHECK(print_training_length(TrainingLength::seconds(5400)) == "90min");
  CHECK(print_training_length(TrainingLength::seconds(7200)) == "2h");
  CHECK(print_training_length(TrainingLength::seconds(0.5)) == "0.5s");
  CHECK(print_training_length(TrainingLength::none()) == "none");
}

TEST_CASE("shares of a run print so that they read back to the same bits") {
  double share = 1e-9;
  for (int i = 0; i < 2000; ++i, share = share * 1.0143 + 1e-12) {
    CAPTURE(i, share, print_training_length(TrainingLength::fraction(share)));
    CHECK(parse_training_length(print_training_length(TrainingLength::fraction(share))).value ==
          TrainingLength::fraction(share));
  }
}

TEST_CASE("what is no length of training is refused") {
  for (const char* text : {"", "%", "min", "-5%", "-1", "2.5 steps", "0.5 tokens", "3 weeks", "auto", "1e999%", "5m"}) {
    CAPTURE(text);
    const Parsed<TrainingLength> parsed = parse_training_length(text);
    CHECK_FALSE(parsed.value);
    CHECK_FALSE(parsed.rule.empty());
  }
}

TEST_CASE("auto or a count of at least one") {
  CHECK(parse_auto_int("auto").value == AutoInt{0});
  CHECK(parse_auto_int("16").value == AutoInt{16});
  CHECK(print_auto_int(AutoInt{0}) == "auto");
  CHECK_THAT(parse_auto_int("0").rule, Catch::Contains("at least 1"));
  CHECK_THAT(parse_auto_int("-2").rule, Catch::Contains("at least 1"));
  CHECK_THAT(parse_auto_int("automatic").rule, Catch::Contains("must be auto or a whole number"));
}

TEST_CASE("auto, none or a count of at least one") {
  CHECK(parse_auto_limit("auto").value == AutoLimit{});
  CHECK(parse_auto_limit("none").value == AutoLimit::none());
  CHECK(parse_auto_limit("0").value == AutoLimit::none());
  CHECK(parse_auto_limit("4Gi").value == AutoLimit{int64_t{4} << 30});
  CHECK(print_auto_limit(AutoLimit{}) == "auto");
  CHECK(print_auto_limit(AutoLimit::none()) == "none");
  CHECK(print_auto_limit(AutoLimit{1000}) == "1000");
  CHECK_THAT(parse_auto_limit("-2").rule, Catch::Contains("must be auto, none or at least 1"));
  CHECK_THAT(parse_auto_limit("nothing").rule, Catch::Contains("must be auto, none or a whole number"));
}

TEST_CASE("only true and false are truth values") {
  CHECK(parse_bool("true").value == true);
  CHECK(parse_bool("false").value == false);
  for (const char* text : {"yes", "on", "1", "True", ""}) CHECK_FALSE(parse_bool(text).value);
}

TEST_CASE("times are sums of counted units, and print as they are read") {
  const auto [text, seconds, printed] = GENERATE(table<std::string, double, std::string>({
      {"90s", 90, "1min30s"},
      {"3h50m", 13800, "3h50min"},
      {"3h 50min", 13800, "3h50min"},
      {"2d", 172800, "48h"},
      {"0.5s", 0.5, "0.5s"},
      {"1.5 hours", 5400, "1h30min"},
      {"none", 0, "none"},
      {"0", 0, "none"},
      {"0s", 0, "none"},
  }));
  CAPTURE(text);
  const Parsed<Duration> parsed = parse_duration(text);
  REQUIRE(parsed.value);
  CHECK(parsed.value->seconds == seconds);
  CHECK(print_duration(*parsed.value) == printed);
  CHECK(parse_duration(printed).value->seconds == seconds);
}

TEST_CASE("what is no time is refused") {
  for (const char* text : {"", "90", "h", "3h50", "-3h", "3x", "1e3s", "none 3h", "5%", "1.2.3s"}) {
    CAPTURE(text);
    CHECK(!parse_duration(text).value);
  }
}
