#include "resilience/progress.h"

#include <algorithm>
#include <chrono>

#include "base/strings.h"

namespace tokamak {

namespace {

constexpr double kSecond = 1e9;  // nanoseconds
constexpr std::memory_order kRelaxed = std::memory_order_relaxed;

}  // namespace

const char* name_of(Phase phase) {
  constexpr std::array<const char*, kPhases> kNames = {"start",   "load", "step", "validation", "evals",
                                                       "samples", "save", "stop", "end"};
  const auto index = static_cast<size_t>(phase);
  return index < kPhases ? kNames[index] : "?";
}

double Limits::of_phase(const PhaseGaps& gaps) const {
  const double least = gaps.passed == 0 ? kUnmeasured * floor : floor;
  return std::min(std::max(kGaps * gaps.longest, least), ceiling);
}

std::string Limits::text(const PhaseGaps& gaps) const {
  return str(kGaps, " x the longest pause so far (", fixed(gaps.longest, 3), " s), at least ",
             gaps.passed == 0 ? str(kUnmeasured, " x ") : "", "resilience.watchdog_min (", floor, " s)",
             gaps.passed == 0 ? ", as the phase was never passed before" : "", ", at most resilience.watchdog_max (",
             ceiling, " s)");
}

int64_t RunProgress::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int64_t RunProgress::tick() {
  const int64_t at = now();
  const int64_t gap = at - last_.exchange(at, kRelaxed);
  std::atomic<int64_t>& longest = longest_[static_cast<size_t>(phase())];
  int64_t known = longest.load(kRelaxed);
  while (gap > known && !longest.compare_exchange_weak(known, gap, kRelaxed)) {
  }
  return at;
}

// The time since the last tick still belongs to the phase before this one.
void RunProgress::enter(Phase phase) {
  tick();
  phase_.store(phase, kRelaxed);
}

void RunProgress::leave(Phase back_to) {
  tick();
  passed_[static_cast<size_t>(phase())].fetch_add(1, kRelaxed);
  phase_.store(back_to, kRelaxed);
}

void RunProgress::begin_step(int64_t step) {
  enter(Phase::kStep);
  step_.store(step, kRelaxed);
  step_begin_ = now();
  collective_at_begin_ = collective_.load(kRelaxed);
}

void RunProgress::end_step() {
  tick();
  const int64_t in_collectives = collective_.load(kRelaxed) - collective_at_begin_;
  computing_.fetch_add(now() - step_begin_ - in_collectives, kRelaxed);
  passed_[static_cast<size_t>(Phase::kStep)].fetch_add(1, kRelaxed);
}

RunProgress::Reading RunProgress::read() const {
  const Phase at = phase();
  const auto index = static_cast<size_t>(at);
  return {.phase = at,
          .step = step_.load(kRelaxed),
          .idle = static_cast<double>(now() - last_.load(kRelaxed)) / kSecond,
          .gaps = {.longest = static_cast<double>(longest_[index].load(kRelaxed)) / kSecond,
                   .passed = passed_[index].load(kRelaxed)},
          .steps = passed_[static_cast<size_t>(Phase::kStep)].load(kRelaxed),
          .computing = static_cast<double>(computing_.load(kRelaxed)) / kSecond};
}

}  // namespace tokamak
