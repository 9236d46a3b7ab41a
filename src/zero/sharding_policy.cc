#include "zero/sharding_policy.h"

#include "base/error.h"

namespace tokamak {

namespace {

// The optimizer's state, the masters and the reduced gradients are sharded in every stage.
struct Stage {
  int64_t number;
  ShardingPolicy policy;
};
constexpr Stage kStages[] = {
    {1, {.kept_layers = ShardingPolicy::kAllLayers, .reduce_once = true}},
    {2, {.kept_layers = ShardingPolicy::kAllLayers, .reduce_once = false}},
    {3, {.kept_layers = 0, .reduce_once = false}},
};

}  // namespace

ShardingPolicy sharding_policy(const ParallelismOptions& options) {
  ShardingPolicy policy;
  for (const Stage& stage : kStages) {
    if (stage.number == options.zero_stage) policy = stage.policy;
  }
  TOKAMAK_CHECK(!options.keep_gathered.is_auto(), "parallelism.keep_gathered: auto is not settled");
  if (!options.keep_gathered.is_none()) policy.kept_layers = options.keep_gathered.value;
  if (options.reduce == ReduceWhen::kLastMicrobatch) policy.reduce_once = true;
  policy.overlap = options.overlap;
  return policy;
}

int replicas_of(const ParallelismOptions& options, int ranks) {
  const int64_t replicas = options.data_parallel_replicate_degree;
  if (ranks % replicas != 0) {
    fail(Kind::kConfig,
         str("parallelism.data_parallel_replicate_degree is ", replicas, ", which does not divide the ", ranks,
             " rank(s)"),
         "use a divisor, or another number of ranks");
  }
  return static_cast<int>(replicas);
}

}  // namespace tokamak
