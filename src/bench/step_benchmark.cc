#include "bench/step_benchmark.h"

#include <algorithm>

#include "backend/timeline.h"
#include "base/clock.h"
#include "bench/replay.h"
#include "plan/dry_run.h"
#include "train/random_batch.h"
#include "train/step.h"

namespace tokamak {

namespace {

constexpr int64_t kMostMeasuring = 20;
constexpr double kLr = 1e-4;
constexpr int64_t kRecording = 4;  // steps: each pass comes twice, in either place that batches lie in

class Benchmark {
 public:
  Benchmark(Engine& engine, const BatchShape& shape, int64_t mean_document)
      : engine_(engine),
        shape_(shape),
        batch_(shape, {.vocab = engine.model().config().vocab_size,
                       .rank = engine.mesh().data().rank(),
                       .mean_document = mean_document}) {}

  double seconds_of_step() {
    engine_.comm().barrier();
    const Stopwatch watch;
    attended_ = run_step(engine_, batch_.step(), {.t = ++steps_, .lr = kLr, .micro_batches = shape_.micro_batches()});
    engine_.compute().synchronize();
    engine_.comm().barrier();
    return watch.seconds();
  }

  // Runs steps until micro-batches run as they will from then on (runtime.cuda_graphs).
  void warm_up() {
    seconds_of_step();
    for (int64_t i = 0; i < kMostMeasuring && !engine_.model().settled(); ++i) seconds_of_step();
    if (!engine_.model().replays()) return;
    for (int64_t i = 0; i < kRecording; ++i) seconds_of_step();
  }

  double attended() const { return attended_; }  // the same in every step

  Profile profile() {
    Device& device = *engine_.backend().device;
    Timeline timeline(device);
    {
      const Observation watched(device, timeline);
      seconds_of_step();
    }
    Profile profile = profile_of(timeline.entries());
    const double counted = engine_.model().attended().in_sequences(shape_.length);
    for (auto& [name, entry] : profile) entry.flops *= share_of_counted(name, attended_, counted);
    return profile;
  }

 private:
  Engine& engine_;
  BatchShape shape_;
  RandomBatch batch_;
  int64_t steps_ = 0;
  double attended_ = 0;
};

}  // namespace

PlannedBenchmark plan_benchmark(const RunConfig& config, const GlobalBatch& batch, const Mesh& mesh, Backend& backend,
                                const MemoryShare& memory, int64_t micro_batches) {
  PlannedBenchmark planned;
  RunConfig cut = config;
  const auto plan_beside = [&](int64_t bytes) {
    planned = {};  // one engine at a time
    planned.run =
        plan_run(cut, batch, mesh, backend, PlanFor::kBenchmark, memory.total - bytes, memory.available - bytes);
    BatchShape& shape = planned.run.shape;
    if (micro_batches > 0) shape.sequences_per_rank = micro_batches * shape.micro_batch;
    cut.training.micro_batch_size = {shape.micro_batch};  // decided as without the benchmark's memory
    RunConfig resolved = cut;
    resolved.activation_checkpoint = planned.run.activation_checkpoint;
    DryRun dry(resolved, batch, mesh.world().size(), INT64_MAX, PlanFor::kBenchmark);
    planned.gemms = gemms_of(dry.record(shape), *backend.ops);
    planned.plan = planned.run.engine->plan();
    Replay::plan(calls_of(planned.gemms), *backend.device, planned.plan);
    return planned.plan.total_bytes() - planned.run.engine->plan().total_bytes();
  };
  // The shapes of GEMMs, and so the memory of the benchmark, do not depend on the kept activations.
  const int64_t bytes = plan_beside(0);
  if (planned_bytes(planned.plan, *backend.device) > std::min(memory.total, memory.available)) plan_beside(bytes);
  return planned;
}

StepBenchmark benchmark_step(Engine& engine, const StepBenchmarkOptions& options) {
  const std::vector<RecordedGemm>& gemms = options.gemms;
  Benchmark benchmark(engine, options.shape, options.mean_document);
  Replay replay(engine.backend(), calls_of(gemms), {});
  const auto seconds_of = [&](const RecordedGemm& gemm, double least) {
    replay.prepare(gemm.call);
    return replay.seconds(least);
  };

  StepBenchmark result;
  result.tokens_per_step = options.shape.sequences_per_rank * options.shape.length * engine.mesh().data().size();
  for (const RecordedGemm& gemm : gemms) seconds_of(gemm, 0);  // a first call loads kernels
  benchmark.warm_up();
  const auto medians = medians_in_turn(options.rounds, gemms.size() + 1, [&](size_t i) {
    return i < gemms.size() ? seconds_of(gemms[i], kSecondsOfGemm) : benchmark.seconds_of_step();
  });
  result.profile = benchmark.profile();
  result.attended = benchmark.attended();

  double flops = 0, seconds = 0;
  for (size_t i = 0; i < gemms.size(); ++i) {
    flops += double(gemms[i].count) * gemms[i].flops();
    seconds += double(gemms[i].count) * medians[i];
    result.gemms.emplace_back(gemms[i], gemms[i].flops() / medians[i]);
  }
  result.gemm_rate = flops / seconds * engine.comm().size();
  result.step_seconds = medians.back();
  result.tokens_per_second = double(result.tokens_per_step) / result.step_seconds;
  return result;
}

}  // namespace tokamak
