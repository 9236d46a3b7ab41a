// The uses of wall-clock time. Each millisecond of a run is part of exactly one entry.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>

namespace tokamak {

enum class Spent {
  kProductive,  // training of steps that no later start trained again
  kLost,        // training of steps that were trained again later
  kStartup,     // from the start of a process to its first step
  kDown,        // from the last record of a start to the next process: detection, queue
  kSaves,       // training waited for a save
  kValidation,
  kEvals,
  kSamples,  // training.samples
  kHang,     // from the last record before a hang to the file that the watchdog wrote
  kOther,    // not explained by any record
};

struct SpentKind {
  Spent kind;
  const char* key;    // in JSON
  const char* label;  // in texts
};
inline constexpr std::array<SpentKind, 10> kAllSpent = {{
    {Spent::kProductive, "productive", "productive training"},
    {Spent::kLost, "lost", "lost steps, trained again"},
    {Spent::kStartup, "startup", "startup, exec to first step"},
    {Spent::kDown, "down", "down, last sign of life to exec"},
    {Spent::kSaves, "saves", "saves, while training waited"},
    {Spent::kValidation, "validation", "validation"},
    {Spent::kEvals, "evals", "evaluations"},
    {Spent::kSamples, "samples", "samples of text"},
    {Spent::kHang, "hang", "hangs, until the watchdog's end"},
    {Spent::kOther, "other", "other"},
}};

class TimeSplit {
 public:
  int64_t& operator[](Spent kind) { return milliseconds_[static_cast<size_t>(kind)]; }
  int64_t operator[](Spent kind) const { return milliseconds_[static_cast<size_t>(kind)]; }
  int64_t total() const { return std::accumulate(milliseconds_.begin(), milliseconds_.end(), int64_t{0}); }

  TimeSplit& operator+=(const TimeSplit& other) {
    for (const SpentKind& one : kAllSpent) (*this)[one.kind] += other[one.kind];
    return *this;
  }

 private:
  std::array<int64_t, kAllSpent.size()> milliseconds_{};
};

}  // namespace tokamak
