#include "train/state_slices.h"

#include <new>

#include "base/error.h"

namespace tokamak {

ShardPlace shard_place(const Comm& comm) { return {.index = comm.rank(), .count = comm.size()}; }

HostState::HostState(Engine& engine) : engine_(engine) {
  parts_.push_back({.kind = "master", .state = engine.parameters().master()});
  if (engine.trains()) {
    parts_.push_back({.kind = "exp_avg", .state = engine.optimizer().exp_avg()});
    parts_.push_back({.kind = "exp_avg_sq", .state = engine.optimizer().exp_avg_sq()});
  }
  for (Part& part : parts_) {
    part.host = part.state;
    if (engine.backend().device->uses_host_memory()) continue;
    try {
      part.copy = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(part.state.count()));
    } catch (const std::bad_alloc&) {
      fail(Kind::kDevice,
           str("no host memory for the copy of ", part.kind,
               " that checkpoints are written from: ", human_bytes(part.state.bytes())),
           "more ranks on more nodes, each holding a smaller part of the state");
    }
    part.host = Tensor(part.copy.get(), DType::kF32, part.state.shape());
  }
}

void HostState::fetch() {
  Device& device = *engine_.backend().device;
  for (const Part& part : parts_) {
    if (part.copy != nullptr) device.copy_to_host(engine_.compute(), part.state, part.copy.get());
  }
  engine_.compute().synchronize();
}

void HostState::push() {
  Device& device = *engine_.backend().device;
  for (const Part& part : parts_) {
    if (part.copy != nullptr) device.copy_to_device(engine_.compute(), part.copy.get(), part.state);
  }
}

std::vector<UnitSlices> HostState::slices() const {
  ShardedParameters& parameters = engine_.parameters();
  std::vector<UnitSlices> units;
  for (size_t u = 0; u < engine_.table().units.size(); ++u) {
    const int64_t begin = parameters.slice_begin(static_cast<int64_t>(u));
    const int64_t end = begin + parameters.slice_elements(static_cast<int64_t>(u));
    UnitSlices unit{&engine_.table().units[u], {}};
    for (const Part& part : parts_) unit.slices.push_back({part.kind, part.host.flat(begin, end)});
    units.push_back(std::move(unit));
  }
  return units;
}

}  // namespace tokamak
