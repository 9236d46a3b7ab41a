// Parsers and printers of numbers in a config. A text that cannot be represented exactly is refused, never rounded:
// print_X(v) reads back as v to the last bit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fields.h"

namespace tokamak {

// A value; or what was expected, as the rest of the sentence "key 'K' (value V) ...", and a hint.
template <class T>
struct Parsed {
  std::optional<T> value;
  std::string rule;
  std::string hint;
};

// "4096", "-1", "1_000_000", "1e9", "250B", "1.5M", "64Ki": K M B T are powers of 1000, Ki Mi Gi Ti of 1024.
Parsed<int64_t> parse_count(std::string_view text);
std::string print_count(int64_t value);        // digits
std::string print_human_count(int64_t value);  // "250B", "1500M": in units of the largest power of 1000 that divides it

// "0.1", "3e-4", "5%". Infinity and NaN are refused.
Parsed<double> parse_number(std::string_view text);
std::string print_number(double value);

// "true" or "false", nothing else.
Parsed<bool> parse_bool(std::string_view text);
std::string print_bool(bool value);

// "auto" or a count of at least 1.
Parsed<AutoInt> parse_auto_int(std::string_view text);
std::string print_auto_int(AutoInt value);

// "auto" or a number of at least 0.
Parsed<AutoNumber> parse_auto_number(std::string_view text);
std::string print_auto_number(AutoNumber value);

// "auto", "none" (also "0") or a count of at least 1.
Parsed<AutoLimit> parse_auto_limit(std::string_view text);
std::string print_auto_limit(AutoLimit value);

// "90s", "1.5h", "3h50m", "2d 6h", "none"; never negative. A number without a unit is refused, except for 0.
Parsed<Duration> parse_duration(std::string_view text);
std::string print_duration(Duration value);

// "2000", "2000 steps", "1B tokens", "5%", "90min", "2h", "30s", "1d", "none"; never negative, steps and tokens whole.
Parsed<TrainingLength> parse_training_length(std::string_view text);
std::string print_training_length(const TrainingLength& value);

}  // namespace tokamak
