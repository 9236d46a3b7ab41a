// Which weights the optimizer decays. Without gradients decay is all that it does.
#include "optim/optimizer.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace tokamak;

namespace {

ParamTable table_of_every_kind() {
  const auto unit = [](UnitKind kind, const std::string& name, Decay decay = Decay::kYes) {
    return Unit{kind, name, {{name, {{name, Shape{3, 7}, 1.0, 0.0, decay}}}}};
  };
  return {{unit(UnitKind::kEmbedding, "embedding"), unit(UnitKind::kLayer, "layer.0"),
           unit(UnitKind::kLayer, "layer.1"), unit(UnitKind::kHead, "head"),
           unit(UnitKind::kNorms, "norms", Decay::kNo)}};
}

// Each unit's weights after one step at this learning rate; all were 1 before.
std::vector<float> after_a_step(const OptimizerOptions& options, double lr) {
  const ParamTable table = table_of_every_kind();
  Backend backend = make_cpu_backend();
  const auto stream = backend.device->make_stream();
  const auto comm = make_single_comm();
  MemoryPlan plan;
  ShardedParameters parameters(table, *comm, backend, {}, plan);
  const auto optimizer = make_optimizer(options, 0, parameters, plan);
  const auto control = plan.add("control", DType::kF32, Shape{kStepControls});
  const Arena arena(plan, *backend.device);
  parameters.commit(arena);
  optimizer->commit(arena);
  parameters.initialize(1, *stream);
  backend.ops->fill(*stream, {.x = arena[control], .value = 1});  // kApply and kGradScale
  optimizer->step(*stream, {.t = 1, .lr = lr, .control = arena[control]});

  std::vector<float> left;
  for (int64_t u = 0; u < 5; ++u) {
    const std::vector<Tensor> matrices = parameters.acquire(u, *stream);
    const float* master = parameters.master().as<float>() + parameters.slice_begin(u);
    left.push_back(master[0]);
    CHECK(std::all_of(master, master + 21, [&](float w) { return w == master[0]; }));
    CHECK(to_float(matrices[0].as<bf16>()[20]) == to_float(bf16(master[0])));
  }
  return left;
}

}  // namespace

TEST_CASE("matrices decay, norms do not, the embedding and the head as configured") {
  CHECK(after_a_step({.weight_decay = 0.5}, 0.5) == std::vector<float>{0.75f, 0.75f, 0.75f, 0.75f, 1});
  CHECK(after_a_step({.weight_decay = 0.5, .decay_embeddings = false}, 0.5) ==
        std::vector<float>{1, 0.75f, 0.75f, 1, 1});
}
