// A second optimizer, which only this file names: SGD with momentum (Sutskever et al. 2013). It trains, saves, resumes
// and appears in plans.
#include <catch2/catch.hpp>

#include "model/parameters.h"
#include "optim/optimizer.h"
#include "train/toy_training.h"

using namespace tokamak;

namespace {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const OptimizerOptions& options) : Optimizer(options, {{"momentum", DType::kF32}}) {}

  void step(Stream& stream, const UpdateStep& step) override {
    ShardedParameters& p = parameters();
    TOKAMAK_CHECK(p.weights().dtype() == DType::kF32, "updates f32 weights only");
    p.begin_update(stream);
    for (const UpdatePart& part : p.update_parts()) {
      stream.synchronize();
      const auto* control = step.control.as<float>();
      auto *w = p.master().as<float>(), *v = state()[0].tensor.as<float>();
      for (int64_t i = part.begin; i < part.end && control[kApply] != 0; ++i) {
        v[i] = static_cast<float>(options().betas[0]) * v[i] + control[kGradScale] * p.gradients().as<float>()[i];
        w[i] -= static_cast<float>(step.lr) * v[i];
      }
      p.updated(part, stream);
    }
  }
};

RunConfig sgd_config(const ToyPlace& place, const std::string& name, int ranks) {
  optimizer_makers()["sgd"] = [](const OptimizerOptions& options, uint64_t) -> std::unique_ptr<Optimizer> {
    return std::make_unique<Sgd>(options);
  };
  RunConfig config = place.config(name, ranks);
  config.optimizer.name = "sgd";
  config.optimizer.lr = 0.5;
  return config;
}

}  // namespace

TEST_CASE("a second optimizer trains, and a resumed run ends as one that never stopped, on other ranks too") {
  const ToyPlace place;
  CHECK(train(2, sgd_config(place, "straight", 2)) == RunEnd::kDone);
  const auto losses = records(place.run("straight"));
  REQUIRE(losses.at(6) < losses.at(1) - 0.3);  // it learns
  const ToyState straight = saved_state(place.checkpoint("straight", 6));
  for (const auto& [key, values] : straight.tensors) CHECK((key.first == "master" || key.first == "momentum"));
  for (const int ranks : {1, 2, 3}) {
    INFO("2 ranks, then " << ranks);
    const std::string name = str("then-", ranks);
    CHECK(train(2, sgd_config(place, name, 2), {.stop_at_step = 3}) == RunEnd::kStopped);
    CHECK(train(ranks, sgd_config(place, name, ranks)) == RunEnd::kDone);
    CHECK(worst_difference(records(place.run(name)), losses) < 1e-6);  // sums of gradients differ by 2^-23
    if (ranks == 2) CHECK((saved_state(place.checkpoint(name, 6)) == straight));
  }
}

TEST_CASE("a run that goes on with another optimizer is refused, naming the state that is missing") {
  const ToyPlace place;
  train(1, sgd_config(place, "run", 1), {.stop_at_step = 3});
  CHECK_THAT(error_of(1, place.config("run")).what(),
             Catch::Contains("has no 'exp_avg' of 'model.embed_tokens.weight', only master, momentum"));
}

TEST_CASE("a second optimizer's state is in the memory plan, the snapshot and the saved bytes of a parameter") {
  const ToyPlace place;
  const RunConfig config = sgd_config(place, "planned", 1);
  const int64_t masters = planned_bytes_of(config, "parameters/master");
  CHECK(planned_bytes_of(config, "optimizer/") == masters);
  CHECK(planned_bytes_of(config, "optimizer/momentum") == masters);
  CHECK(planned_bytes_of(config, "snapshot/") == 2 * masters);
  CHECK(planned_bytes_of(config, "snapshot/momentum") == masters);
  const ParamTable table = make_param_table(config.model);
  CHECK(saved_bytes(config.optimizer, table) == 8 * table.count());
}
