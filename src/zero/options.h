// How parameters, gradients and optimizer state are spread over the ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak {

enum class ReduceWhen { kEveryMicrobatch, kLastMicrobatch };
inline const std::vector<std::string>& enum_names(ReduceWhen) {
  static const std::vector<std::string> names = {"every_microbatch", "last_microbatch"};
  return names;
}

struct ParallelismOptions {
  int64_t zero_stage = 3;
  int64_t data_parallel_shard_degree = -1;
  int64_t data_parallel_replicate_degree = 1;
  ReduceWhen reduce = ReduceWhen::kEveryMicrobatch;

  template <class Visitor>
  void fields(Visitor& v) {
    v("zero_stage", zero_stage,
      "what is sharded: 3 = parameters, gradients and optimizer state (Rajbhandari et al. 2020)");
    v("data_parallel_shard_degree", data_parallel_shard_degree,
      "ranks that share one copy of the model state; -1: all");
    v("data_parallel_replicate_degree", data_parallel_replicate_degree, "replicas of the sharded model state (HSDP)");
    v("reduce", reduce, "when gradients are reduced: every_microbatch takes less memory, last_microbatch less traffic");
  }
};

}  // namespace tokamak
