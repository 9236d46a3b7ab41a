// This rank's phase, step and latest progress, for its watchdog. Any thread may tick; only the training thread
// enters phases and steps. No call waits or takes a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "resilience/options.h"

namespace tokamak {

enum class Phase : int32_t { kStart, kLoad, kStep, kValidation, kEvals, kSamples, kSave, kStop, kEnd };
inline constexpr size_t kPhases = 9;
const char* name_of(Phase phase);

// The measurements of a phase so far.
struct PhaseGaps {
  double longest = 0;  // seconds without progress
  int64_t passed = 0;  // how often the phase has ended; for kStep, steps done
};

// How long a phase may go without progress: 8 times its longest pause so far, within bounds. A phase that never ended
// yet gets at least five times the lower bound: a first step loads libraries, a first save meets an unknown disk.
struct Limits {
  static constexpr double kGaps = 8;
  static constexpr double kUnmeasured = 5;

  double floor = 0;    // seconds
  double ceiling = 0;  // seconds

  static Limits of(const ResilienceOptions& options) {
    return {options.watchdog_min.seconds, options.watchdog_max.seconds};
  }
  double of_phase(const PhaseGaps& gaps) const;
  std::string text(const PhaseGaps& gaps) const;  // how of_phase computes it
};

class RunProgress {
 public:
  RunProgress() : last_(now()) {}
  static int64_t now();  // nanoseconds, monotonic

  // Records progress: a call has begun or ended, or a micro-batch or a chunk of a file is processed. Returns now().
  int64_t tick();
  void enter(Phase phase);
  void leave(Phase back_to);  // ends the phase and returns to an outer one

  void begin_step(int64_t step);
  void end_step();
  void add_collective(int64_t nanoseconds) { collective_.fetch_add(nanoseconds, std::memory_order_relaxed); }

  struct Reading {
    Phase phase = Phase::kStart;
    int64_t step = 0;
    double idle = 0;  // seconds since the last progress
    PhaseGaps gaps;   // of the phase
    int64_t steps = 0;
    double computing = 0;  // seconds of those steps outside collectives
  };
  Reading read() const;
  Phase phase() const { return phase_.load(std::memory_order_relaxed); }

 private:
  std::atomic<Phase> phase_{Phase::kStart};
  std::atomic<int64_t> step_{0};
  std::atomic<int64_t> last_;
  std::array<std::atomic<int64_t>, kPhases> longest_{};
  std::array<std::atomic<int64_t>, kPhases> passed_{};
  std::atomic<int64_t> collective_{0};  // nanoseconds
  std::atomic<int64_t> computing_{0};   // nanoseconds
  int64_t step_begin_ = 0;              // used by the training thread only, as the next
  int64_t collective_at_begin_ = 0;
};

// Enters a phase for the lifetime of this object. If `progress` is nullptr, it does nothing.
class PhaseScope {
 public:
  PhaseScope(RunProgress* progress, Phase phase)
      : progress_(progress), before_(progress == nullptr ? phase : progress->phase()) {
    if (progress_ != nullptr) progress_->enter(phase);
  }
  ~PhaseScope() {
    if (progress_ != nullptr) progress_->leave(before_);
  }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  RunProgress* const progress_;
  const Phase before_;
};

class StepScope {
 public:
  StepScope(RunProgress* progress, int64_t step) : progress_(progress) {
    if (progress_ != nullptr) progress_->begin_step(step);
  }
  ~StepScope() {
    if (progress_ != nullptr) progress_->end_step();
  }
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;

 private:
  RunProgress* const progress_;
};

}  // namespace tokamak
