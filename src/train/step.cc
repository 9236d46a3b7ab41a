#include "train/step.h"

#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace tokamak {

TokenBatch view_of(const MicroBatch& batch) {
  return {batch.tokens, batch.targets, batch.positions,
          std::span(batch.cu_seqlens).first(static_cast<size_t>(batch.segments + 1))};
}

NextBatch batches_of(Loader& loader, RunProgress* progress) {
  return [&loader, progress] {
    const MicroBatch& batch = loader.next();
    if (progress != nullptr) progress->tick();
    return view_of(batch);
  };
}

double compute_gradients(Engine& engine, const NextBatch& next, int64_t micro_batches) {
  Stream& compute = engine.compute();
  engine.backend().ops->fill(compute, {.x = engine.sums(), .value = 0});
  engine.parameters().begin_step();
  double attended = 0;  // by each micro-batch; all have as many tokens
  for (int64_t m = 0; m < micro_batches; ++m) {
    const TokenBatch batch = next();
    engine.parameters().begin_microbatch(m + 1 == micro_batches);
    attended += engine.model().attended().in_documents(batch.cu_seqlens);
    engine.model().forward_backward(compute, batch, engine.sums());
  }
  engine.model().finish_gradients(compute);
  return attended / double(micro_batches);
}

void update_weights(Engine& engine, const StepSettings& settings) {
  Stream& compute = engine.compute();
  reduce_and_clip(engine.parameters(), compute, engine.sums(), engine.control(),
                  {.max_norm = settings.max_grad_norm,
                   .max_unit_norm = settings.max_unit_grad_norm,
                   .unit_sums = engine.unit_sums(),
                   .limits = settings.limits,
                   .non_finite = settings.non_finite});
  ShardStatistics* statistics = settings.statistics;
  if (statistics != nullptr) {
    statistics->see_gradients(compute, engine.sums().flat(kSumTargets, kSumTargets + 1));
  }
  if (settings.guard != nullptr) settings.guard->before_update();
  // The gradients' memory is free once the optimizer has read them.
  const Tensor updates = statistics != nullptr ? engine.parameters().gradients() : Tensor();
  engine.optimizer().step(compute,
                          {.t = settings.t, .lr = settings.lr, .control = engine.control(), .updates = updates});
  engine.averages().update(settings.averages, compute);
  if (settings.guard != nullptr) settings.guard->after_update();
  if (statistics != nullptr) statistics->see_update(compute);
}

double run_step(Engine& engine, const NextBatch& next, const StepSettings& settings) {
  const double attended = compute_gradients(engine, next, settings.micro_batches);
  update_weights(engine, settings);
  return attended;
}

StepReader::StepReader(Engine& engine) : engine_(engine), arrived_(engine.backend().device->make_event()) {
  // The memory is pinned, since the host would wait for a copy to other memory.
  MemoryPlan plan;
  const auto control = plan.add("outcome", DType::kF32, Shape{kStepControls}, MemoryKind::kPinned);
  arena_ = std::make_unique<Arena>(plan, *engine.backend().device);
  control_ = (*arena_)[control];
}

void StepReader::fetch(int64_t step, double lr, double attended) {
  TOKAMAK_CHECK(!pending_, "step ", step, ": the outcome of the step before was not read");
  pending_ = {.step = step, .lr = lr, .attended = attended, .time = now_seconds()};
  engine_.backend().device->copy_to_host(engine_.compute(), engine_.control(), control_.data());
  engine_.compute().record(*arrived_);
}

StepOutcome StepReader::take() {
  TOKAMAK_CHECK(pending_, "no outcome waits to be read");
  arrived_->synchronize();
  StepOutcome outcome = *std::exchange(pending_, std::nullopt);
  const auto* control = control_.as<float>();
  outcome.loss = control[kMeanLoss];
  outcome.z_loss = control[kMeanZLoss];
  outcome.grad_norm = control[kGradNorm];
  outcome.applied = control[kApply] != 0.0f;
  return outcome;
}

}  // namespace tokamak
