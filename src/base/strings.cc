#include "base/strings.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace tokamak {

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += separator;
    out += words[i];
  }
  return out;
}

std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> fields;
  size_t begin = 0;
  for (size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator, begin)) {
    fields.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  fields.emplace_back(text.substr(begin));
  return fields;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

bool fits_pattern(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

namespace {

std::string printed(const char* format, double value, int digits) {
  std::array<char, 64> buffer;
  std::snprintf(buffer.data(), buffer.size(), format, digits, value);
  return buffer.data();
}

std::string scaled(double value, double base, const std::vector<const char*>& suffixes) {
  size_t i = 0;
  while (std::abs(value) >= base && i + 1 < suffixes.size()) {
    value /= base;
    ++i;
  }
  const int digits = i == 0 ? 0 : std::abs(value) < 10 ? 2 : std::abs(value) < 100 ? 1 : 0;
  return printed("%.*f", value, digits) + suffixes[i];
}

}  // namespace

std::string human_count(double count) { return scaled(count, 1000, {"", "K", "M", "B", "T", "P", "E"}); }

std::string human_si(double value, std::string_view unit) {
  return scaled(value, 1000, {" ", " K", " M", " G", " T", " P", " E", " Z", " Y"}).append(unit);
}

std::string human_bytes(double bytes) { return scaled(bytes, 1024, {" B", " KiB", " MiB", " GiB", " TiB", " PiB"}); }

std::string human_duration(double seconds) {
  const auto total = static_cast<int64_t>(std::max(0.0, std::round(seconds)));
  std::array<char, 64> buffer;
  const auto hours = static_cast<long long>(total / 3600);
  const auto minutes = static_cast<int>(total / 60 % 60);
  const auto rest = static_cast<int>(total % 60);
  if (hours > 0) {
    std::snprintf(buffer.data(), buffer.size(), "%lld:%02d:%02d", hours, minutes, rest);
  } else {
    std::snprintf(buffer.data(), buffer.size(), "%d:%02d", minutes, rest);
  }
  return buffer.data();
}

std::string fixed(double value, int digits) { return printed("%.*f", value, digits); }

std::string significant(double value, int digits) { return printed("%.*g", value, digits); }

int64_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<int64_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const int64_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substitute, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr size_t kLongestWord = 64;  // longer than every name: the distance takes time proportional to both lengths
  if (word.size() > kLongestWord) return "";
  std::string best;
  int64_t best_distance = std::ssize(word) / 3 + 1;
  for (const std::string& candidate : candidates) {
    const int64_t distance = edit_distance(word, candidate);
    if (distance <= best_distance && (best.empty() || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace tokamak
