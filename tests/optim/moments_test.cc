// bf16 moments: the bits of a step do not depend on how many ranks share the state, by which policy, or where a run was
// interrupted.
#include <cmath>

#include "optim/sharded_optimizer.h"

using namespace tokamak;

namespace {

WholeState run(const Split& split, const OptimizerSteps& steps, const WholeState* start = nullptr) {
  return run_steps(uneven_table(), {.moments = MomentType::kBF16}, split, steps, start);
}

}  // namespace

TEST_CASE("bf16 moments: any number of ranks and replicas, by any policy, has the bits of one rank") {
  const WholeState one = run({}, {});
  for (const Split& split : all_splits()) {
    INFO(split.text());
    CHECK((run(split, {}) == one));
  }
}

TEST_CASE(
    "bf16 moments: a run that goes on from another number of ranks ends with the bits of one that never stopped") {
  const WholeState straight = run({}, {});
  for (const Split& before : all_splits()) {
    const WholeState half = run(before, {.last = 2});
    for (const Split& after : {Split{1}, Split{3}, Split{4, 2}}) {
      INFO(before.text() << ", then " << after.text());
      CHECK((run(after, {.first = 3}, &half) == straight));
    }
  }
}

TEST_CASE("bf16 moments: each step rounds otherwise, the same values too") {
  const WholeState a = run({2}, {.last = 1}), b = run({2}, {.first = 2, .last = 2, .gradients = 1});
  CHECK(a.at("exp_avg") != b.at("exp_avg"));
  CHECK(a.at("exp_avg_sq") != b.at("exp_avg_sq"));
}

TEST_CASE("bf16 moments: another seed rounds otherwise, and moves masters by little") {
  const WholeState a = run({2}, {}), b = run({2}, {.seed = 4});
  CHECK(a.at("exp_avg") != b.at("exp_avg"));
  CHECK(a.at("exp_avg_sq") != b.at("exp_avg_sq"));
  CHECK(run({2}, {.last = 1}).at("master") ==
        run({2}, {.last = 1, .seed = 4}).at("master"));  // rounded after the first update
  double worst = 0;
  for (size_t i = 0; i < a.at("master").size(); ++i) {
    worst = std::max(worst, double(std::abs(a.at("master")[i] - b.at("master")[i])));
  }
  CHECK(worst > 0);
  CHECK(worst < 5 * 0.01);  // below the five steps of this learning rate
}
