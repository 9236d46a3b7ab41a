// A rank's record of its own progress, and the limits that follow from it.
#include "resilience/progress.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

using namespace tokamak;

namespace {

void pause(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace

TEST_CASE(
    "a limit is 8 times the longest pause, within its bounds; five times the lower one where nothing is measured") {
  const Limits limits = {.floor = 120, .ceiling = 1800};
  CHECK(limits.of_phase({.longest = 0.5, .passed = 3}) == 120);
  CHECK(limits.of_phase({.longest = 20, .passed = 3}) == 160);
  CHECK(limits.of_phase({.longest = 1000, .passed = 3}) == 1800);
  CHECK(limits.of_phase({.longest = 0.5, .passed = 0}) == 600);
  CHECK(limits.of_phase({.longest = 100, .passed = 0}) == 800);
  CHECK(Limits{.floor = 120, .ceiling = 300}.of_phase({}) == 300);
  CHECK_THAT(limits.text({.longest = 20, .passed = 3}),
             Catch::StartsWith("8 x the longest pause so far (20.000 s), at least resilience.watchdog_min"));
}

TEST_CASE("a tick ends a pause, and the longest pause of each phase is kept") {
  RunProgress progress;
  {
    const PhaseScope save(&progress, Phase::kSave);
    pause(0.05);
    CHECK(progress.read().idle >= 0.05);
    progress.tick();
    CHECK(progress.read().idle < 0.05);
    pause(0.01);
    const RunProgress::Reading reading = progress.read();
    CHECK(reading.phase == Phase::kSave);
    CHECK(reading.gaps.longest >= 0.05);
    CHECK(reading.gaps.passed == 0);
  }
  CHECK(progress.phase() == Phase::kStart);
  CHECK(progress.read().gaps.longest < 0.05);  // the save's are not the start's
  progress.enter(Phase::kSave);
  CHECK(progress.read().gaps.passed == 1);
  CHECK(progress.read().gaps.longest >= 0.05);
}

TEST_CASE("steps are counted with the seconds of them that were not spent in collectives") {
  RunProgress progress;
  for (int step = 1; step <= 2; ++step) {
    const StepScope scope(&progress, step);
    pause(0.02);
    progress.add_collective(10'000'000);
  }
  progress.add_collective(1'000'000'000);  // between steps
  const RunProgress::Reading reading = progress.read();
  CHECK(reading.step == 2);
  CHECK(reading.steps == 2);
  CHECK(reading.computing >= 0.02);
  CHECK(reading.computing < 10);
}

TEST_CASE("scopes without a RunProgress do nothing") {
  const auto pass_scopes = [] {
    const PhaseScope phase(nullptr, Phase::kSave);
    const StepScope step(nullptr, 1);
  };
  CHECK_NOTHROW(pass_scopes());
}
