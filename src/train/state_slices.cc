#include "train/state_slices.h"

#include <new>

#include "base/error.h"

namespace tokamak {

HostState::HostState(Engine& engine) : engine_(engine) {
  for (const auto& [kind, state, snapshot] : engine.state()) {
    Part& part = parts_.emplace_back(Part{.kind = kind, .state = state, .host = snapshot ? snapshot : state});
    if (snapshot || engine.backend().device->uses_host_memory()) continue;
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
    if (part.host.data() != part.state.data()) device.copy_to_host(engine_.compute(), part.state, part.host.data());
  }
  engine_.compute().synchronize();
}

void HostState::push() {
  Device& device = *engine_.backend().device;
  for (const Part& part : parts_) {
    if (part.host.data() != part.state.data()) device.copy_to_device(engine_.compute(), part.host.data(), part.state);
  }
}

ShardPlace HostState::place() const {
  const Mesh& mesh = engine_.mesh();
  return {.index = mesh.shard().rank(), .count = mesh.shard().size(), .writes = mesh.replica() == 0};
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
