// The uses of wall-clock time. Each millisecond of a run counts in exactly one entry.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>

namespace tokamak {

enum class Spent {
  kProductive,  // training of steps that count
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

inline constexpr std::array<Spent, 10> kAllSpent = {
    Spent::kProductive, Spent::kLost,  Spent::kStartup, Spent::kDown, Spent::kSaves,
    Spent::kValidation, Spent::kEvals, Spent::kSamples, Spent::kHang, Spent::kOther};

inline constexpr std::array<const char*, 10> kSpentNames = {"productive", "lost",  "startup", "down", "saves",
                                                            "validation", "evals", "samples", "hang", "other"};

class TimeSplit {
 public:
  int64_t& operator[](Spent kind) { return milliseconds_[static_cast<size_t>(kind)]; }
  int64_t operator[](Spent kind) const { return milliseconds_[static_cast<size_t>(kind)]; }
  int64_t total() const { return std::accumulate(milliseconds_.begin(), milliseconds_.end(), int64_t{0}); }

  TimeSplit& operator+=(const TimeSplit& other) {
    for (const Spent kind : kAllSpent) (*this)[kind] += other[kind];
    return *this;
  }

 private:
  std::array<int64_t, kAllSpent.size()> milliseconds_{};
};

}  // namespace tokamak
