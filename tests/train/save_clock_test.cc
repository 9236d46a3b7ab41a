#include "train/save_clock.h"

#include <catch2/catch.hpp>

#include "base/strings.h"
#include "support/ranks.h"

using namespace tokamak;

namespace {

constexpr int64_t kTokens = 100;  // a step

RunState at(int64_t step) { return {.step = step, .tokens = step * kTokens, .next_sample = step}; }

// The steps of a run at which a save is due, "3 6".
std::string due_steps(const TrainingLength& interval, int64_t from = 0) {
  SaveClock clock(interval);
  clock.restart(at(from));
  const auto comm = make_single_comm();
  std::vector<std::string> steps;
  for (int64_t step = from + 1; step <= 12; ++step) {
    if (!clock.due(at(step), *comm)) continue;
    steps.push_back(str(step));
    clock.restart(at(step));
  }
  return join(steps, " ");
}

}  // namespace

TEST_CASE("saves in steps are due at the multiples, wherever a start began") {
  CHECK(due_steps(TrainingLength::steps(5)) == "5 10");
  CHECK(due_steps(TrainingLength::steps(5), 4) == "5 10");
}

TEST_CASE("saves in tokens are due an interval after the last try, or after the start") {
  CHECK(due_steps(TrainingLength::tokens(5 * kTokens)) == "5 10");
  CHECK(due_steps(TrainingLength::tokens(5 * kTokens - 1)) == "5 10");
  CHECK(due_steps(TrainingLength::tokens(5 * kTokens + 1)) == "6 12");
  CHECK(due_steps(TrainingLength::tokens(5 * kTokens), 4) == "9");
}

TEST_CASE("without an interval no save is due") {
  CHECK(due_steps(TrainingLength::none()).empty());
  CHECK(due_steps(TrainingLength::steps(0)).empty());
  CHECK(due_steps(TrainingLength::tokens(0)).empty());
  CHECK(due_steps(TrainingLength::seconds(0)).empty());
}

TEST_CASE("saves in seconds are due when they have passed since the last try") {
  const double seconds = 0.02;
  SaveClock clock(TrainingLength::seconds(seconds));
  const auto comm = make_single_comm();
  while (!clock.due(at(1), *comm)) {
  }
  const Stopwatch since;
  clock.restart(at(1));
  const bool due = clock.due(at(1), *comm);
  CHECK((!due || since.seconds() >= seconds));
}

RANKS_CASE("saves in seconds are due on all ranks once they are on one") {
  const bool slow = world.rank() != world.size() - 1;
  SaveClock clock(TrainingLength::seconds(slow ? 1e6 : 1e-9));
  CHECK(clock.due(at(1), world.comm()));

  SaveClock hours(TrainingLength::seconds(1e6));
  CHECK(!hours.due(at(1), world.comm()));
}
