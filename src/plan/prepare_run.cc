#include "plan/prepare_run.h"

#include "base/log.h"
#include "comm/collective_error.h"
#include "comm/data_comm.h"
#include "plan/auto_choice.h"
#include "train/run_data.h"

namespace tokamak {

namespace {

// The library of GEMMs keeps what its first call takes. Called early, this counts as the program's memory.
void load_gemm_library(Backend& backend, DType compute) {
  constexpr int64_t kSize = 64;
  MemoryPlan plan;
  const auto a = plan.add("a", compute, Shape{kSize, kSize});
  const auto b = plan.add("b", compute, Shape{kSize, kSize});
  const auto c = plan.add("c", compute, Shape{kSize, kSize});
  const Arena arena(plan, *backend.device);
  const auto stream = backend.device->make_stream();
  backend.ops->fill(*stream, {.x = arena[a], .value = 0});
  backend.ops->fill(*stream, {.x = arena[b], .value = 0});
  backend.ops->gemm(*stream, {.a = arena[a], .b = arena[b], .c = arena[c], .trans_b = Transpose::kYes});
  stream->synchronize();
}

}  // namespace

SettledRun settle_run(World& world, Backend& backend, const RunConfig& config, const GlobalBatch& batch) {
  SettledRun run{.config = config};
  // The groups come first, since they take memory that is then no longer available.
  run.data_comm = make_data_comm(world.comm(), *backend.device, config.runtime, config.precision.reduce);
  run.mesh = std::make_unique<MeshGroups>(*run.data_comm, replicas_of(config.parallelism, world.size()),
                                          world.size() / batch.data_ranks());
  if (backend.device->uses_host_memory()) load_gemm_library(backend, compute_dtype(config.precision));
  run.memory = memory_share(*backend.device, world, run.mesh->mesh(), config.runtime);
  if (!leaves_choice(config)) return run;
  const ExplainedChoice choice = choose_collectively(world.comm(), {.config = config,
                                                                    .batch = batch,
                                                                    .ranks = world.size(),
                                                                    .ranks_per_node = world.local_size(),
                                                                    .device = backend.device->description(),
                                                                    .total = run.memory.total,
                                                                    .available = run.memory.available});
  run.choice = choice;
  run.why = choice.why;
  run.config = with_choice(config, choice);
  return run;
}

PreparedRun prepare_run(World& world, Backend& backend, const RunConfig& config, const GlobalBatch& batch) {
  PreparedRun run{settle_run(world, backend, config, batch), 0, {}};
  if (run.choice && world.rank() == 0) {
    log::info("chosen: ", text_of(config, *run.choice), "; ", run.why);
  }
  collectively(world.comm(), [&] {
    run.program_bytes = backend.device->used_bytes();
    run.planned = plan_run(run.config, batch, run.mesh->mesh(), backend, PlanFor::kTraining, run.memory.total,
                           run.memory.available);
    const int64_t micro_batch = run.planned.shape.micro_batch;
    expect_fit(run.planned.engine->plan(), *backend.device, run.memory, run.config, micro_batch,
               read_ahead_bytes(run.config, micro_batch));
  });
  return run;
}

}  // namespace tokamak
