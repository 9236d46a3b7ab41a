// How parameters, gradients and optimizer state are sharded over the ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"

namespace tokamak {

enum class ReduceWhen { kAuto, kEveryMicrobatch, kLastMicrobatch };
inline const std::vector<std::string>& enum_names(ReduceWhen) {
  static const std::vector<std::string> names = {"auto", "every_microbatch", "last_microbatch"};
  return names;
}

enum class UnitSize { kLayer, kProjection };
inline const std::vector<std::string>& enum_names(UnitSize) {
  static const std::vector<std::string> names = {"layer", "projection"};
  return names;
}

struct ParallelismOptions {
  int64_t zero_stage = 3;
  int64_t data_parallel_shard_degree = -1;
  int64_t data_parallel_replicate_degree = 1;
  ReduceWhen reduce = ReduceWhen::kAuto;
  UnitSize unit = UnitSize::kLayer;
  AutoLimit keep_gathered = AutoLimit::none();
  bool overlap = true;

  template <class Visitor>
  void fields(Visitor& v) {
    v("zero_stage", zero_stage,
      "what the ranks shard (ZeRO, Rajbhandari et al. 2020): 1 optimizer state; 2 and gradients; 3 and weights. Lower "
      "stages take more memory and less traffic");
    v("data_parallel_shard_degree", data_parallel_shard_degree,
      "ranks that share one copy of the state; -1: all ranks divided by data_parallel_replicate_degree");
    v("data_parallel_replicate_degree", data_parallel_replicate_degree,
      "copies of the sharded state (HSDP), each on consecutive ranks; divides the ranks. More copies take more memory, "
      "and fewer ranks gather weights");
    v("reduce", reduce,
      "when gradients are reduced: every_microbatch takes less memory, last_microbatch less traffic. auto: the latter "
      "with zero_stage 1, or as other auto keys choose");
    v("unit", unit,
      "weights gathered and reduced at once: a layer, or a projection (attention, gate and up, down): less memory, more "
      "messages, a second gather to recompute");
    v("keep_gathered", keep_gathered,
      "layers that stay gathered over the step, with zero_stage 3: more take more memory and less traffic. auto: as "
      "many as predict the shortest step at each start");
    v("overlap", overlap,
      "gather and reduce while the device computes, across steps, too; false: in turn with the computation, to measure "
      "what overlap saves");
  }
};

}  // namespace tokamak
