#include "plan/prepare_run.h"

#include <algorithm>

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

// The share that buffers may fill: on the host, what the data reads ahead takes its part.
MemoryShare for_buffers(MemoryShare share, const Device& device, const RunConfig& config, const GlobalBatch& batch) {
  if (!device.uses_host_memory()) return share;
  const int64_t read_ahead = read_ahead_bytes(config, batch.sequences_per_rank);
  share.total = std::max<int64_t>(0, share.total - read_ahead);
  share.available = std::max<int64_t>(0, share.available - read_ahead);
  return share;
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
  const MemoryShare fillable = for_buffers(run.memory, *backend.device, config, batch);
  const ExplainedChoice choice = choose_collectively(world.comm(), {.config = config,
                                                                    .batch = batch,
                                                                    .ranks = world.size(),
                                                                    .ranks_per_node = world.local_size(),
                                                                    .device = backend.device->description(),
                                                                    .total = fillable.total,
                                                                    .available = fillable.available});
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
    const MemoryShare fillable = for_buffers(run.memory, *backend.device, run.config, batch);
    run.planned =
        plan_run(run.config, batch, run.mesh->mesh(), backend, PlanFor::kTraining, fillable.total, fillable.available);
    const int64_t micro_batch = run.planned.shape.micro_batch;
    expect_fit(run.planned.engine->plan(), *backend.device, run.memory, run.config, micro_batch,
               read_ahead_bytes(run.config, micro_batch));
  });
  return run;
}

}  // namespace tokamak
