#include "train/state_slices.h"

#include <functional>
#include <new>

#include "base/error.h"
#include "train/memory_check.h"

namespace tokamak {

namespace {

// `parts_of` finds the memory of elements [begin, end) of a part of the state.
std::vector<UnitSlices> slices_of(
    Engine& engine, const std::vector<StateTensor>& state,
    const std::function<std::vector<Tensor>(size_t part, int64_t begin, int64_t end)>& parts_of) {
  const ShardedParameters& parameters = engine.parameters();
  std::vector<UnitSlices> units;
  for (int64_t u = 0; const Unit& unit : engine.table().units) {
    UnitSlices& slices = units.emplace_back(UnitSlices{&unit, {}});
    for (size_t part = 0; part < state.size(); ++part) {
      const StateUnit& held = state[part].units.at(static_cast<size_t>(u));
      if (!held.is_held()) continue;
      slices.slices.push_back({.kind = state[part].name,
                               .parts = parts_of(part, held.begin, held.begin + parameters.slice_elements(u)),
                               .weights = held.weights});
    }
    ++u;
  }
  return units;
}

}  // namespace

ShardPlace place_of(const Engine& engine) {
  const Mesh& mesh = engine.mesh();
  return {
      .index = mesh.shard().rank(), .count = mesh.shard().size(), .writes = mesh.replica() == 0 && mesh.reader() == 0};
}

HostState::HostState(Engine& engine) : engine_(engine), state_(engine.state()) {
  for (const StateTensor& one : state_) {
    const Tensor state = one.tensor;
    Part& part = parts_.emplace_back(Part{.state = state, .host = state, .copy = nullptr});
    if (engine.backend().device->uses_host_memory() || one.in_host_memory) continue;
    try {
      part.copy = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(state.bytes()));
    } catch (const std::bad_alloc&) {
      fail(Kind::kDevice, str("no host memory to read ", one.name, " into: ", human_bytes(state.bytes())),
           "more ranks on more nodes, each holding a smaller part of the state");
    }
    part.host = Tensor(part.copy.get(), state.dtype(), state.shape());
  }
}

void HostState::push() {
  Device& device = *engine_.backend().device;
  for (const Part& part : parts_) {
    if (part.copy) device.copy_to_device(engine_.compute(), part.host.data(), part.state);
  }
  engine_.parameters().masters_changed(engine_.compute());
}

std::vector<UnitSlices> HostState::slices() const {
  return slices_of(engine_, state_, [&](size_t part, int64_t begin, int64_t end) {
    return std::vector<Tensor>{parts_[part].host.flat(begin, end)};
  });
}

StateSnapshot::StateSnapshot(Engine& engine) : engine_(engine), state_(engine.state()) {
  Device& device = *engine.backend().device;
  if (engine.plans_snapshot()) {
    int64_t bytes = 0;
    for (const StateTensor& part : state_) {
      begins_.push_back(bytes);
      bytes += part.tensor.bytes();
    }
    memory_.emplace(device, SnapshotMemory::Options{.bytes = bytes, .hint = snapshot_hint(device)});
  }
  TOKAMAK_CHECK(memory_ || device.uses_host_memory(), "a run that saves plans a snapshot");
}

void StateSnapshot::take_memory() {
  if (!memory_) return;
  memory_->start();
  memory_->expect_no_error();
}

void StateSnapshot::fetch() {
  try {
    if (memory_) copy_state();
  } catch (...) {
    engine_.compute().synchronize();  // waits for the copies, whose memory may be released
    throw;
  }
  engine_.compute().synchronize();
}

void StateSnapshot::copy_state() {
  for (size_t part = 0; part < state_.size(); ++part) {
    const Tensor state = state_[part].tensor;
    int64_t at = 0;
    for (const Tensor& host : copies_of(part, 0, state.count())) {
      const Tensor piece = state.flat(at, at + host.count());
      if (state_[part].in_host_memory) {
        engine_.backend().ops->cast(engine_.compute(), {.src = piece, .dst = host});
      } else {
        engine_.backend().device->copy_to_host(engine_.compute(), piece, host.data());
      }
      at += host.count();
    }
  }
}

std::vector<Tensor> StateSnapshot::copies_of(size_t part, int64_t begin, int64_t end) {
  const DType dtype = state_[part].tensor.dtype();
  const int64_t first = begins_[part] + begin * size_of(dtype), last = begins_[part] + end * size_of(dtype);
  std::vector<Tensor> copies;
  for (int64_t at = first; at < last; at += copies.back().bytes()) {
    const std::span<std::byte> bytes = memory_->part(at, last);
    copies.emplace_back(bytes.data(), dtype, Shape{std::ssize(bytes) / size_of(dtype)});
  }
  return copies;
}

std::vector<UnitSlices> StateSnapshot::slices() {
  return slices_of(engine_, state_, [&](size_t part, int64_t begin, int64_t end) {
    return memory_ ? copies_of(part, begin, end) : std::vector<Tensor>{state_[part].tensor.flat(begin, end)};
  });
}

}  // namespace tokamak
