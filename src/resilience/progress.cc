#include "resilience/progress.h"

#include <chrono>

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

int64_t RunProgress::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

RunProgress::RunProgress() : last_(now()) {}

int64_t RunProgress::tick() {
  const int64_t at = now();
  const int64_t gap = at - last_.exchange(at, kRelaxed);
  std::atomic<int64_t>& longest = longest_[static_cast<size_t>(phase())];
  int64_t known = longest.load(kRelaxed);
  while (gap > known && !longest.compare_exchange_weak(known, gap, kRelaxed)) {
  }
  return at;
}

// What is waited for until a phase begins belongs to the phase before.
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

PhaseScope::PhaseScope(RunProgress* progress, Phase phase)
    : progress_(progress), before_(progress == nullptr ? phase : progress->phase()) {
  if (progress_ != nullptr) progress_->enter(phase);
}

PhaseScope::~PhaseScope() {
  if (progress_ != nullptr) progress_->leave(before_);
}

}  // namespace tokamak
