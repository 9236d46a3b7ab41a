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
      "what the ranks share (ZeRO, Rajbhandari et al. 2020): 1 the optimizer's state, 2 gradients too, 3 weights too; "
      "a lower stage takes more memory and less traffic: 2 keeps whole weights over the step and gathers them once, 1 "
      "also whole gradients, which it reduces once");
    v("data_parallel_shard_degree", data_parallel_shard_degree,
      "ranks that share one copy of the state; -1: as many as data_parallel_replicate_degree leaves");
    v("data_parallel_replicate_degree", data_parallel_replicate_degree,
      "copies of the sharded state (HSDP), each held by consecutive ranks, for example those of a node; more copies take "
      "more memory and keep gathers among fewer ranks: between copies only gradients travel, once a step; must divide "
      "the ranks");
    v("reduce", reduce,
      "when gradients are reduced inside a copy: every_microbatch takes less memory; last_microbatch adds whole "
      "gradients up and reduces them once, which saves traffic with several micro-batches; auto: last_microbatch with "
      "zero_stage 1, else every_microbatch; but where activation_checkpoint.mode or keep_gathered is auto, what predicts "
      "the shortest step together with them");
    v("unit", unit,
      "what is gathered and reduced at once: layer, or projection: attention's matrices, gate and up, and down are units of "
      "their own. Two buffers then have the size of the largest: less memory for huge models, more and smaller messages, "
      "and a second gather of what a layer recomputes");
    v("keep_gathered", keep_gathered,
      "layers whose whole weights stay gathered over the step; only with zero_stage 3; more take more memory, and are "
      "not gathered for each pass; auto: as many as predict the shortest step in the memory there is, chosen at each "
      "start together with activation_checkpoint.mode and training.micro_batch_size where those are auto");
    v("overlap", overlap,
      "gather and reduce beside the computation, a unit ahead and a unit behind, over the border of steps too; false: "
      "between its operations, to see what overlap is worth");
  }
};

}  // namespace tokamak
