// Counts are parsed in integer arithmetic. Doubles are parsed by from_chars with decimal units folded into the
// exponent. So "0.1%" is the double nearest to 0.001, not a product that is off by one bit.
#include "config/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/strings.h"

namespace tokamak {

namespace {

// The number at the start of a text, split into parts, and the text after it.
struct Decimal {
  bool found = false;
  bool negative = false;
  std::string digits;       // of the mantissa, without point or underscores
  int64_t exponent = 0;     // value = digits * 10^exponent
  std::string_view suffix;  // trimmed
};

bool is_digit(std::string_view text, size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; }

Decimal scan_decimal(std::string_view text) {
  text = trim(text);
  Decimal out;
  size_t at = 0;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) out.negative = text[at++] == '-';
  bool after_point = false;
  for (; at < text.size(); ++at) {
    if (is_digit(text, at)) {
      out.digits += text[at];
      if (after_point) --out.exponent;
    } else if (text[at] == '.' && !after_point) {
      after_point = true;
    } else if (text[at] != '_' || !is_digit(text, at + 1) || !is_digit(text, at - 1)) {
      break;
    }
  }
  out.found = !out.digits.empty();
  const bool signed_exponent = at + 1 < text.size() && (text[at + 1] == '-' || text[at + 1] == '+');
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E') && is_digit(text, at + (signed_exponent ? 2 : 1))) {
    int64_t power = 0;
    const size_t begin = at + (signed_exponent && text[at + 1] == '+' ? 2 : 1);
    const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), power);
    out.exponent += error == std::errc() ? std::clamp<int64_t>(power, -100000, 100000) : 100000;
    at = static_cast<size_t>(end - text.data());
  }
  out.suffix = trim(text.substr(at));
  return out;
}

struct CountUnit {
  const char* suffix;
  int64_t base;
  int power;
};
constexpr CountUnit kCountUnits[] = {{"", 10, 0},     {"K", 10, 3},    {"k", 10, 3},   {"M", 10, 6},
                                     {"B", 10, 9},    {"G", 10, 9},    {"T", 10, 12},  {"Ki", 1024, 1},
                                     {"Mi", 1024, 2}, {"Gi", 1024, 3}, {"Ti", 1024, 4}};

constexpr const char* kCountHint = "for example 4096, 1e6, 64Ki, 1.5M or 250B";

// mantissa * base^power * 10^exponent if that is an integer within int64.
Parsed<int64_t> exact_count(const Decimal& number, const CountUnit& unit) {
  const std::string too_large = str("is out of range: the largest count is ", INT64_MAX);
  std::string digits = number.digits;
  int64_t exponent = number.exponent + (unit.base == 10 ? unit.power : 0);
  while (digits.size() > 1 && digits.back() == '0') {
    digits.pop_back();
    ++exponent;
  }
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc()) return {{}, exponent < 0 ? "has more digits than a count can hold" : too_large, kCountHint};
  if (number.negative) value = -value;
  if (value == 0) return {0, "", ""};
  for (int i = 0; unit.base == 1024 && i < unit.power; ++i) {
    if (__builtin_mul_overflow(value, 1024, &value)) return {{}, too_large, ""};
  }
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(value, 10, &value)) return {{}, too_large, ""};
  }
  for (; exponent < 0; ++exponent) {
    if (value % 10 != 0) return {{}, "must come out as a whole number", kCountHint};
    value /= 10;
  }
  return {value, "", ""};
}

// digits * 10^(exponent + shift), correctly rounded.
Parsed<double> exact_number(const Decimal& number, int64_t shift) {
  const std::string text = str(number.digits, "e", number.exponent + shift);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return {{}, "is out of the range of a 64-bit floating-point number", ""};
  return {number.negative ? -value : value, "", ""};
}

std::string shortest(double value, std::chars_format format) {
  std::array<char, 512> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format);
  return error == std::errc() ? std::string(buffer.data(), end) : "";
}

// Mantissa and power of ten of the shortest spelling: 0.000125 is {"1.25", -4}.
std::pair<std::string, int> scientific(double value) {
  const std::string text = shortest(value, std::chars_format::scientific);
  const size_t e = text.find('e');
  int power = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), text.data() + text.size(), power);
  return {text.substr(0, e), power};
}

struct TimeUnit {
  const char* name;
  double seconds;
};
constexpr TimeUnit kTimeUnits[] = {{"s", 1},        {"sec", 1},     {"seconds", 1}, {"min", 60},
                                   {"minutes", 60}, {"h", 3600},    {"hour", 3600}, {"hours", 3600},
                                   {"d", 86400},    {"day", 86400}, {"days", 86400}};

constexpr const char* kExtentRule = "must be a number of steps or tokens, a share of the run, or a time";
constexpr const char* kDurationRule = "must be a time, or none";
constexpr const char* kDurationHint = "for example 90s, 30min, 3h50min or 2d";
constexpr const char* kExtentHint = "for example 2000 steps, 1B tokens, 5%, 90min or 2h";

bool take_word(std::string_view& text, std::string_view word) {
  if (text.size() < word.size() || text.substr(text.size() - word.size()) != word) return false;
  text.remove_suffix(word.size());
  return true;
}

Parsed<TrainingLength> counted(std::string_view text, TrainingLength::Unit unit) {
  const Parsed<int64_t> count = parse_count(text);
  if (!count.value) return {{}, scan_decimal(text).found ? count.rule : kExtentRule, kExtentHint};
  return {TrainingLength{unit, double(*count.value)}, "", ""};
}

}  // namespace

Parsed<int64_t> parse_count(std::string_view text) {
  const Decimal number = scan_decimal(text);
  if (!number.found) return {{}, "must be a whole number", kCountHint};
  for (const CountUnit& unit : kCountUnits) {
    if (number.suffix == unit.suffix) return exact_count(number, unit);
  }
  return {{}, str("ends in '", number.suffix, "', which is not a unit"), "units are K, M, B, T and Ki, Mi, Gi, Ti"};
}

std::string print_count(int64_t value) { return std::to_string(value); }

std::string print_human_count(int64_t value) {
  for (const auto& [suffix, unit] : {std::pair("B", int64_t{1000000000}), std::pair("M", int64_t{1000000})}) {
    if (value != 0 && value % unit == 0) return str(value / unit, suffix);
  }
  return print_count(value);
}

Parsed<double> parse_number(std::string_view text) {
  const Decimal number = scan_decimal(text);
  if (!number.found || (number.suffix != "" && number.suffix != "%")) {
    return {{}, "must be a number", "for example 0.1, 3e-4 or 5%"};
  }
  return exact_number(number, number.suffix == "%" ? -2 : 0);
}

std::string print_number(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  const double size = std::abs(value);
  if (size == 0 || (size >= 1e-4 && size < 1e15)) return shortest(value, std::chars_format::fixed);
  const auto [mantissa, power] = scientific(value);
  return str(mantissa, "e", power);
}

Parsed<bool> parse_bool(std::string_view text) {
  if (text == "true" || text == "false") return {text == "true", "", ""};
  return {{}, "must be true or false", ""};
}

std::string print_bool(bool value) { return value ? "true" : "false"; }

Parsed<AutoInt> parse_auto_int(std::string_view text) {
  if (text == "auto") return {AutoInt{}, "", ""};
  const Parsed<int64_t> count = parse_count(text);
  if (!count.value) {
    return {{}, scan_decimal(text).found ? count.rule : "must be auto or a whole number", count.hint};
  }
  if (*count.value < 1) return {{}, "must be auto or at least 1", ""};
  return {AutoInt{*count.value}, "", ""};
}

std::string print_auto_int(AutoInt value) { return value.is_auto() ? "auto" : print_count(value.value); }

Parsed<AutoNumber> parse_auto_number(std::string_view text) {
  if (text == "auto") return {AutoNumber{}, "", ""};
  const Parsed<double> number = parse_number(text);
  if (!number.value) {
    return {{}, scan_decimal(text).found ? number.rule : "must be auto or a number", number.hint};
  }
  if (*number.value < 0) return {{}, "must be auto or at least 0", ""};
  return {AutoNumber{*number.value}, "", ""};
}

std::string print_auto_number(AutoNumber value) { return value.is_auto() ? "auto" : print_number(value.value); }

Parsed<AutoLimit> parse_auto_limit(std::string_view text) {
  if (text == "auto") return {AutoLimit{}, "", ""};
  if (text == "none") return {AutoLimit::none(), "", ""};
  const Parsed<int64_t> count = parse_count(text);
  if (!count.value) {
    return {{}, scan_decimal(text).found ? count.rule : "must be auto, none or a whole number", count.hint};
  }
  if (*count.value < 0) return {{}, "must be auto, none or at least 1", ""};
  return {AutoLimit{*count.value}, "", ""};
}

std::string print_auto_limit(AutoLimit value) {
  return value.is_auto() ? "auto" : value.is_none() ? "none" : print_count(value.value);
}

Parsed<Duration> parse_duration(std::string_view text) {
  text = trim(text);
  if (text == "none" || text == "0") return {Duration{}, "", ""};
  if (text.empty()) return {{}, kDurationRule, kDurationHint};
  Duration sum;
  while (!text.empty()) {
    const size_t unit_begin = text.find_first_not_of("0123456789. ");
    if (unit_begin == 0 || unit_begin == std::string_view::npos) return {{}, kDurationRule, kDurationHint};
    const size_t unit_end = std::min(text.find_first_of("0123456789. ", unit_begin), text.size());
    const std::string_view name = text.substr(unit_begin, unit_end - unit_begin);
    const auto unit =
        std::find_if(std::begin(kTimeUnits), std::end(kTimeUnits), [&](const TimeUnit& u) { return u.name == name; });
    const Parsed<double> count = parse_number(text.substr(0, unit_begin));
    if (!count.value || (unit == std::end(kTimeUnits) && name != "m")) return {{}, kDurationRule, kDurationHint};
    sum.seconds += *count.value * (name == "m" ? 60 : unit->seconds);
    text = trim(text.substr(unit_end));
  }
  return {sum, "", ""};
}

std::string print_duration(Duration value) {
  if (value.is_none()) return "none";
  if (value.seconds != std::floor(value.seconds) || value.seconds >= 1e9) return print_number(value.seconds) + "s";
  std::string text;
  auto left = static_cast<int64_t>(value.seconds);
  for (const auto& [suffix, seconds] : {std::pair("h", 3600), std::pair("min", 60), std::pair("s", 1)}) {
    if (left >= seconds) text += str(left / seconds, suffix);
    left %= seconds;
  }
  return text;
}

Parsed<TrainingLength> parse_training_length(std::string_view text) {
  text = trim(text);
  if (text == "none") return {TrainingLength::none(), "", ""};
  const Decimal number = scan_decimal(text);
  if (number.negative) return {{}, "must not be negative", kExtentHint};
  if (number.found && number.suffix == "%") {
    const Parsed<double> share = exact_number(number, -2);
    if (!share.value) return {{}, share.rule, kExtentHint};
    return {TrainingLength::fraction(*share.value), "", ""};
  }
  for (const TimeUnit& unit : kTimeUnits) {
    if (number.found && number.suffix == unit.name) {
      const Parsed<double> count = exact_number(number, 0);
      if (!count.value) return {{}, count.rule, kExtentHint};
      return {TrainingLength::seconds(*count.value * unit.seconds), "", ""};
    }
  }
  std::string_view count = text;
  for (const char* word : {"tokens", "token"}) {
    if (take_word(count, word)) return counted(count, TrainingLength::Unit::kTokens);
  }
  for (const char* word : {"steps", "step"}) {
    if (take_word(count, word)) break;
  }
  return counted(count, TrainingLength::Unit::kSteps);
}

std::string print_training_length(const TrainingLength& value) {
  switch (value.unit) {
    case TrainingLength::Unit::kNone:
      return "none";
    case TrainingLength::Unit::kSteps:
      return str(print_count(static_cast<int64_t>(value.value)), " steps");
    case TrainingLength::Unit::kTokens:
      return str(print_human_count(static_cast<int64_t>(value.value)), " tokens");
    case TrainingLength::Unit::kFraction: {
      std::string percent = print_number(value.value * 100) + "%";  // inexact for some values: then as a fraction
      if (parse_training_length(percent).value == value) return percent;
      const auto [mantissa, power] = scientific(value.value);
      return str(mantissa, "e", power + 2, "%");
    }
    case TrainingLength::Unit::kSeconds:
      for (const auto& [suffix, seconds] : {std::pair("h", 3600.0), std::pair("min", 60.0)}) {
        const double count = std::floor(value.value / seconds);
        if (count > 0 && count < 1e9 && count * seconds == value.value) return print_number(count) + suffix;
      }
      return print_number(value.value) + "s";
  }
  return "";
}

}  // namespace tokamak
