// Wall time, for logs and benchmarks only; no reproducible decision reads a clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tokamak {

double now_seconds();         // monotonic
double unix_seconds();        // since 1970
std::string utc_timestamp();  // "2026-01-31T12:34:56Z"

int64_t unix_milliseconds();                              // since 1970
std::string utc_text(int64_t milliseconds);               // since 1970; "2026-01-31T12:34:56.789Z"
std::optional<int64_t> parse_utc(std::string_view text);  // inverse of utc_timestamp() and utc_text()

class Stopwatch {
 public:
  Stopwatch() : start_(now_seconds()) {}
  double seconds() const { return now_seconds() - start_; }
  void restart() { start_ = now_seconds(); }

 private:
  double start_;
};

}  // namespace tokamak
