// Small text helpers: concatenation (g++ 12 has no std::format), human-readable numbers, the nearest known word.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tokamak {

// Appends `value` as operator<< prints it. Text and integers, the bulk of messages and recorded calls, avoid a stream.
template <class Value>
void append(std::string& out, const Value& value) {
  if constexpr (std::is_convertible_v<const Value&, std::string_view>) {
    out += std::string_view(value);
  } else if constexpr (std::is_same_v<Value, char>) {
    out += value;
  } else if constexpr (std::is_integral_v<Value> && sizeof(Value) > 1) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    out.append(digits.data(), end);
  } else {
    std::ostringstream stream;
    stream << value;
    out += stream.str();
  }
}

// The values one after another.
template <class... Values>
std::string str(const Values&... values) {
  std::string out;
  (append(out, values), ...);
  return out;
}

std::string join(const std::vector<std::string>& words, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);   // keeps empty fields
std::string_view trim(std::string_view text);                            // without surrounding white space
bool fits_pattern(const std::string& pattern, const std::string& name);  // as fnmatch: *, ?, [...]
bool starts_with(std::string_view text, std::string_view prefix);

std::string human_count(double count);                      // 1234567 -> "1.23M" (powers of 1000)
std::string human_si(double value, std::string_view unit);  // 967e9, "FLOP/s" -> "967 GFLOP/s" (SI prefixes)
std::string human_bytes(double bytes);                      // 1536 -> "1.50 KiB" (powers of 1024)
std::string human_duration(double seconds);                 // 3725 -> "1:02:05", 65 -> "1:05"
std::string fixed(double value, int digits);                // 1.5, 3 -> "1.500"
std::string significant(double value, int digits);          // 0.00030000, 3 -> "0.0003"

template <std::integral Count>
std::string human_bytes(Count bytes) {
  return human_bytes(double(bytes));
}

// As a word of a POSIX shell: in single quotes, except words of letters, digits and _@%+=:,./- only.
std::string shell_word(std::string_view word);

// Levenshtein distance, for "did you mean".
int64_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, or "" if more than a third of the word would change.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace tokamak
