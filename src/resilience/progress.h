// Where this rank is, and when it last got on: what its watchdog looks at. Any thread may tick; one thread, the one that
// trains, enters phases and steps. Nothing waits, nothing is locked.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tokamak {

enum class Phase : int32_t { kStart, kLoad, kStep, kValidation, kEvals, kSamples, kSave, kStop, kEnd };
inline constexpr size_t kPhases = 9;
const char* name_of(Phase phase);

// What of a phase was measured so far.
struct PhaseGaps {
  double longest = 0;  // seconds without progress
  int64_t passed = 0;  // times that it was passed; of kStep, steps
};

class RunProgress {
 public:
  RunProgress();
  static int64_t now();  // nanoseconds, monotonic

  // Got on: a call began or ended, a micro-batch or a chunk of a file came or went. Returns the nanoseconds of a
  // monotonic clock, which whoever ticks often need not read again.
  int64_t tick();
  void enter(Phase phase);
  void leave(Phase back_to);  // the phase is passed; goes on in that one

  void begin_step(int64_t step);
  void end_step();
  void add_collective(int64_t nanoseconds) { collective_.fetch_add(nanoseconds, std::memory_order_relaxed); }

  struct Reading {
    Phase phase = Phase::kStart;
    int64_t step = 0;
    double idle = 0;  // seconds since this rank last got on
    PhaseGaps gaps;   // of the phase
    int64_t steps = 0;
    double computing = 0;  // seconds of those steps that were not spent in collectives
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
  std::atomic<int64_t> computing_{0};   //
  int64_t step_begin_ = 0;              // of the training thread, and the next
  int64_t collective_at_begin_ = 0;
};

// The phase of a scope. `progress` may be nullptr: nobody watches.
class PhaseScope {
 public:
  PhaseScope(RunProgress* progress, Phase phase);
  ~PhaseScope();
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
