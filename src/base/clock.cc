#include "base/clock.h"

#include <array>
#include <cctype>
#include <chrono>
#include <ctime>

namespace tokamak {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

namespace {

std::string calendar_text(std::time_t time, const char* format) {
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 32> buffer;
  std::strftime(buffer.data(), buffer.size(), format, &parts);
  return buffer.data();
}

}  // namespace

std::string utc_timestamp() { return calendar_text(std::time(nullptr), "%Y-%m-%dT%H:%M:%SZ"); }

int64_t unix_milliseconds() { return static_cast<int64_t>(1e3 * unix_seconds()); }

std::string utc_text(int64_t milliseconds) {
  std::string text = calendar_text(milliseconds / 1000, "%Y-%m-%dT%H:%M:%S.");
  const std::string digits = std::to_string(1000 + milliseconds % 1000);
  return text.append(digits, 1, 3).append("Z");
}

std::optional<int64_t> parse_utc(std::string_view text) {
  const std::string whole(text);
  std::tm parts{};
  const char* rest = strptime(whole.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return std::nullopt;
  int64_t fraction = 0;
  if (*rest == '.') {
    ++rest;
    for (int64_t place = 100; std::isdigit(static_cast<unsigned char>(*rest)) != 0; ++rest, place /= 10) {
      fraction += place * (*rest - '0');
    }
  }
  if (std::string_view(rest) != "Z") return std::nullopt;
  return int64_t{timegm(&parts)} * 1000 + fraction;
}

}  // namespace tokamak
