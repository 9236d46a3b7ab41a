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
  int64_t data_parallel_replicate_degree = 1;
  ReduceWhen reduce = ReduceWhen::kAuto;
  UnitSize unit = UnitSize::kLayer;
  AutoLimit keep_gathered = AutoLimit::none();
  bool overlap = true;

  template <class Visitor>
  void fields(Visitor& v) {
    v("zero_stage", zero_stage,
      "sharded over the ranks (ZeRO): 1 optimizer state, 2 also gradients, 3 also weights; a lower stage takes more "
      "memory and less traffic");
    v("data_parallel_replicate_degree", data_parallel_replicate_degree,
      "copies of the sharded state (HSDP), each on consecutive ranks; more take more memory and keep gathers among "
      "fewer ranks; must divide the ranks");
    v("reduce", reduce,
      "when gradients are reduced: every_microbatch saves memory, last_microbatch traffic; auto: last_microbatch "
      "with zero_stage 1 or where predicted faster");
    v("unit", unit,
      "weights gathered at once: a layer, or a projection (attention, gate and up, down); projection saves memory and "
      "sends more messages");
    v("keep_gathered", keep_gathered,
      "layers whose whole weights stay gathered over the step, with zero_stage 3; more save gathers and take memory; "
      "auto: the fastest predicted that fits");
    v("overlap", overlap,
      "gather and reduce during the computation, a unit ahead and a unit behind; false: in sequence, to see what "
      "overlap gains");
  }
};

}  // namespace tokamak
