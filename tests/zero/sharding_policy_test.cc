// The options of parallelism, and the sharding policies that they select.
#include "zero/sharding_policy.h"

#include <catch2/catch.hpp>

#include "base/error.h"

using namespace tokamak;
using Catch::Contains;

TEST_CASE("a stage says what stays whole, and reduce and keep_gathered add to it") {
  const auto policy = [](int64_t stage, ReduceWhen reduce = ReduceWhen::kAuto, int64_t kept = 0) {
    return sharding_policy({.zero_stage = stage, .reduce = reduce, .keep_gathered = {kept}});
  };
  const int64_t all = ShardingPolicy::kAllLayers;
  CHECK((policy(3).kept_layers == 0 && !policy(3).reduce_once));
  CHECK((policy(2).kept_layers == all && !policy(2).reduce_once));
  CHECK((policy(1).kept_layers == all && policy(1).reduce_once));
  for (const int64_t stage : {2, 3}) {
    CHECK(policy(stage, ReduceWhen::kLastMicrobatch).reduce_once);
    CHECK(!policy(stage, ReduceWhen::kEveryMicrobatch).reduce_once);
    CHECK(policy(stage, ReduceWhen::kLastMicrobatch).kept_layers == policy(stage).kept_layers);
  }
  CHECK(policy(3, ReduceWhen::kAuto, 5).kept_layers == 5);
}

TEST_CASE("the replicate degree must divide the ranks") {
  const auto replicas = [](int64_t copies, int ranks) {
    return replicas_of({.data_parallel_replicate_degree = copies}, ranks);
  };
  CHECK(replicas(1, 7) == 1);
  CHECK(replicas(2, 8) == 2);
  CHECK(replicas(8, 8) == 8);
  CHECK_THROWS_WITH(replicas(3, 8),
                    Contains("parallelism.data_parallel_replicate_degree is 3, which does not divide the 8 rank(s)"));
}
