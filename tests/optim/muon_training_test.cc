// Runs that train with Muon: any ranks, stages and resumes, and changes of the optimizer.
#include <catch2/catch.hpp>

#include "model/parameters.h"
#include "optim/optimizer.h"
#include "train/toy_training.h"

using namespace tokamak;

namespace {

constexpr int64_t kSteps = 6;

RunConfig muon_config(const ToyPlace& place, const std::string& name, int ranks) {
  RunConfig config = place.config(name, ranks);
  config.optimizer.name = "muon";
  return config;
}

}  // namespace

TEST_CASE(
    "Muon trains alike on any ranks, by every ZeRO stage and with replicas, and a resumed run has the same bits") {
  const ToyPlace place;
  REQUIRE(train(1, muon_config(place, "one", 1)) == RunEnd::kDone);
  const auto reference = records(place.run("one"));
  REQUIRE(reference.at(kSteps) < reference.at(1) - 0.1);  // it learns
  struct Case {
    int ranks;
    int64_t stage, replicas;
    bool overlap;
  };
  for (const Case& c : {Case{1, 3, 1, true},
                        {2, 1, 1, true},
                        {2, 2, 1, true},
                        {2, 3, 1, true},
                        {2, 3, 1, false},
                        {3, 3, 1, true},
                        {4, 3, 2, true},
                        {4, 2, 2, false}}) {
    const std::string name = str(c.ranks, "-", c.stage, "-", c.replicas, "-", c.overlap);
    INFO(name);
    const auto config = [&](const std::string& run) {
      RunConfig out = muon_config(place, run, c.ranks);
      out.parallelism.zero_stage = c.stage;
      if (c.stage == 1) out.parallelism.reduce = ReduceWhen::kLastMicrobatch;
      out.parallelism.data_parallel_replicate_degree = c.replicas;
      out.parallelism.overlap = c.overlap;
      return out;
    };
    CHECK(train(c.ranks, config(name)) == RunEnd::kDone);
    // Gradients differ by 2^-23 between numbers of ranks, and Newton-Schulz enlarges small singular values 485 times.
    CHECK(worst_difference(records(place.run(name)), reference) < 1e-4);
    CHECK(train(c.ranks, config(name + "-halves"), {.stop_at_step = 3}) == RunEnd::kStopped);
    CHECK(train(c.ranks, config(name + "-halves")) == RunEnd::kDone);
    CHECK((saved_state(place.checkpoint(name + "-halves", kSteps)) == saved_state(place.checkpoint(name, kSteps))));
    CHECK(train(c.ranks % 3 + 1, [&] {
            RunConfig out = muon_config(place, name + "-elsewhere", c.ranks % 3 + 1);
            out.checkpoint.load = place.checkpoint(name + "-halves", kSteps);
            out.training.max_steps = kSteps + 1;
            return out;
          }()) == RunEnd::kDone);
  }
}

TEST_CASE(
    "a change of the optimizer is refused, naming what is missing; if it is allowed, the state starts from zero") {
  const ToyPlace place;
  const auto stop = [](int64_t step) { return ToyRunOptions{.stop_at_step = step}; };
  train(2, place.config("run", 2), stop(3));
  const SharedError refused = error_of(2, muon_config(place, "run", 2));
  CHECK(refused.kind() == Kind::kCheckpoint);
  CHECK_THAT(refused.what(), Catch::Contains("has no 'momentum' of 'model.layers.0.self_attn.q_proj.weight', only "
                                             "master, exp_avg, exp_avg_sq: it was trained with another optimizer"));
  CHECK_THAT(refused.hint(), Catch::Contains("checkpoint.allow_changes=[optimizer]"));

  RunConfig allowed = muon_config(place, "run", 2);
  allowed.checkpoint.allow_changes = {"optimizer"};
  CHECK(train(2, allowed, stop(4)) == RunEnd::kStopped);
  const ToyState first = saved_state(place.checkpoint("run", 4));
  CHECK(first.run.optimizer_start == 3);
  // A run that begins with these masters has the moments of its own first step.
  const auto& exp_avg = first.tensors.at({"exp_avg", "model.norm.weight"});
  const auto& exp_avg_sq = first.tensors.at({"exp_avg_sq", "model.norm.weight"});
  for (size_t i = 0; i < exp_avg.size(); ++i) {  // (1 - b1) g and (1 - b2) g^2
    CHECK(exp_avg_sq[i] == Approx(0.05 * std::pow(exp_avg[i] / 0.1, 2)).epsilon(1e-4));
  }
  // Later starts find the state, and keep it.
  CHECK(train(2, allowed, stop(5)) == RunEnd::kStopped);
  CHECK(saved_state(place.checkpoint("run", 5)).run.optimizer_start == 3);
  CHECK(train(2, muon_config(place, "run", 2)) == RunEnd::kDone);
  CHECK(saved_state(place.checkpoint("run", kSteps)).run.optimizer_start == 3);
}

TEST_CASE("a weight whose optimizer changes is refused, also where its unit has the state of both") {
  const ToyPlace place;
  RunConfig mixed = muon_config(place, "run", 2);
  mixed.optimizer.groups = {{.match = {"*.o_proj.weight"}, .name = "adamw"}};
  train(2, mixed, {.stop_at_step = 3});
  CHECK_THAT(error_of(2, muon_config(place, "run", 2)).what(),
             Catch::Contains("has no 'momentum' of 'model.layers.0.self_attn.o_proj.weight', only master, exp_avg, "
                             "exp_avg_sq"));
  CHECK(train(2, mixed) == RunEnd::kDone);
}

TEST_CASE("a frozen group keeps its weights, and the others train") {
  const ToyPlace place;
  RunConfig config = muon_config(place, "frozen", 2);
  config.optimizer.groups = {{.match = {"*.q_proj.weight", "model.embed_tokens.weight"}, .lr_scale = 0}};
  config.metrics.tensor_statistics = 1;
  train(2, config, {.stop_at_step = 1});
  CHECK(train(2, config) == RunEnd::kDone);
  const ToyState early = saved_state(place.checkpoint("frozen", 1)),
                 late = saved_state(place.checkpoint("frozen", kSteps));
  for (const auto& [key, values] : late.tensors) {
    if (key.first != "master") continue;
    const bool frozen = key.second.find("q_proj") != std::string::npos || key.second == "model.embed_tokens.weight";
    INFO(key.second);
    CHECK((values == early.tensors.at(key)) == frozen);
  }
}

TEST_CASE("Muon's state is smaller than AdamW's: matrices of layers have one value a weight beside the master") {
  const ToyPlace place;
  const RunConfig muon = muon_config(place, "muon", 1), adamw = place.config("adamw", 1);
  const ParamTable table = make_param_table(muon.model);
  int64_t matrices = 0;
  for (const Unit& unit : table.units) matrices += unit.kind == UnitKind::kLayer ? unit.count() : 0;
  CHECK(saved_bytes(adamw.optimizer, table) - saved_bytes(muon.optimizer, table) == 4 * matrices);
  CHECK(planned_bytes_of(muon, "optimizer/momentum") >= 4 * matrices);
  CHECK(planned_bytes_of(muon, "snapshot/") < planned_bytes_of(adamw, "snapshot/"));
}
