// How parameters, gradients and optimizer state are sharded over the ranks.
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
      "must be 3 in this version: parameters, gradients and optimizer state are sharded (Rajbhandari et al. 2020)");
    v("data_parallel_shard_degree", data_parallel_shard_degree,
      "ranks that share one copy of the model state; must be -1 in this version: all");
    v("data_parallel_replicate_degree", data_parallel_replicate_degree,
      "replicas of the sharded model state (HSDP); must be 1 in this version");
    v("reduce", reduce,
      "when gradients are reduced: must be every_microbatch in this version, which takes less memory than "
      "last_microbatch and more traffic");
  }
};

}  // namespace tokamak
