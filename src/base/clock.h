// Wall time. Timing feeds logs and benchmarks only; no decision that must be reproducible reads a clock.
#pragma once

#include <string>

namespace tokamak {

double now_seconds();         // monotonic
double unix_seconds();        // since 1970
std::string utc_timestamp();  // "2026-01-31T12:34:56Z"

class Stopwatch {
 public:
  Stopwatch() : start_(now_seconds()) {}
  double seconds() const { return now_seconds() - start_; }
  void restart() { start_ = now_seconds(); }

 private:
  double start_;
};

}  // namespace tokamak
