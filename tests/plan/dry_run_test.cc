// How a dry run cuts the batch of a run whose micro-batch is left to the program.
#include "plan/dry_run.h"

#include <catch2/catch.hpp>

#include "plan/small_run.h"
#include "train/memory_check.h"

using namespace tokamak;

namespace {

constexpr int64_t kPlenty = int64_t{1} << 40;

// Returns the micro-batch for 16 sequences of 4096 tokens on each rank.
int64_t micro_batch(RunConfig config, int64_t bytes, int ranks = 2) {
  config.training.micro_batch_size = {};
  const GlobalBatch batch{.length = 4096, .sequences_per_step = 16 * ranks, .sequences_per_rank = 16, .total_steps = 1};
  return DryRun(config, batch, ranks, bytes).shape().micro_batch;
}

RunConfig run_on(BackendKind backend) {
  RunConfig config = small_run();
  config.model.max_position_embeddings = 4096;
  config.runtime.backend = backend;
  return config;
}

}  // namespace

TEST_CASE("an automatic micro-batch has 8192 tokens at most, but on GPUs that share state it is cut by memory alone") {
  RunConfig gpu = run_on(BackendKind::kCuda);
  CHECK(micro_batch(gpu, kPlenty) == 16);
  gpu.training.micro_batch_size = {4};
  const GlobalBatch batch{.length = 4096, .sequences_per_step = 32, .sequences_per_rank = 16, .total_steps = 1};
  const DryRun four(gpu, batch, 2);
  CHECK(micro_batch(gpu, planned_bytes(four.memory(), four.device())) == 4);

  CHECK(micro_batch(gpu, INT64_MAX) == 2);  // no limit is known
  CHECK(micro_batch(gpu, kPlenty, 1) == 2);
  CHECK(micro_batch(run_on(BackendKind::kCpu), kPlenty) == 2);
  gpu.parallelism.data_parallel_replicate_degree = 2;  // only the last micro-batch exchanges anything
  CHECK(micro_batch(gpu, kPlenty) == 2);
  gpu.parallelism.data_parallel_replicate_degree = 1;
  gpu.activation_checkpoint.mode = RecomputeMode::kSelective;  // keeps activations in the rest of the memory
  CHECK(micro_batch(gpu, kPlenty) == 2);
  gpu.activation_checkpoint.mode = RecomputeMode::kFull;
  CHECK(micro_batch(gpu, kPlenty) == 16);
}
