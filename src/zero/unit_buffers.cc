#include "zero/unit_buffers.h"

#include <algorithm>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr size_t kSharedBuffers = 2;  // one in use, one being gathered

}  // namespace

UnitBuffers::UnitBuffers(const std::string& group, const ParamTable& table, const std::vector<int64_t>& elements,
                         int64_t own, DType dtype, MemoryPlan& plan)
    : group_of_(table.units.size()) {
  const auto units_of = [&](UnitKind kind) {
    std::vector<size_t> units;
    for (size_t u = 0; u < table.units.size(); ++u) {
      if (table.units[u].kind == kind) units.push_back(u);
    }
    return units;
  };
  // Plans `count` buffers. Each may hold any of `units`, and has room for the largest of `sized_by`.
  const auto add = [&](const std::string& name, const std::vector<size_t>& units, size_t count,
                       const std::vector<size_t>& sized_by) {
    int64_t largest = 0;
    for (const size_t u : sized_by) largest = std::max(largest, elements[u]);
    const Group shared{buffers_.size(), std::min(count, units.size())};
    for (const size_t u : units) group_of_[u] = shared;
    for (size_t i = 0; i < shared.count; ++i) {
      Buffer& buffer = buffers_.emplace_back();
      buffer.slot = plan.add(group + "/" + name, dtype, Shape{largest}, MemoryKind::kExchanged);
      buffer.tensor = {nullptr, dtype, Shape{largest}};
    }
  };
  std::vector<size_t> vocabulary = units_of(UnitKind::kEmbedding);
  for (const size_t u : units_of(UnitKind::kHead)) vocabulary.push_back(u);
  const std::vector<size_t> layers = units_of(UnitKind::kLayer);
  const int64_t all = std::ssize(layers) / table.units_per_layer;
  const auto first_sharing = layers.begin() + std::min(all, own) * table.units_per_layer;
  for (auto layer = layers.begin(); layer != first_sharing; ++layer) {
    add(str("layer.", layer - layers.begin()), {*layer}, 1, layers);
  }
  std::vector<size_t> sharing(first_sharing, layers.end());
  if (sharing.empty()) {
    for (const size_t u : vocabulary) add(table.units[u].name, {u}, 1, {u});
  } else if (table.units_per_layer > 1) {
    sharing.insert(sharing.end(), vocabulary.begin(), vocabulary.end());
    add("shared", sharing, kSharedBuffers, sharing);
  } else {
    add("vocabulary", vocabulary, 1, vocabulary);
    add("layer.shared", sharing, kSharedBuffers, layers);
  }
  const std::vector<size_t> norms = units_of(UnitKind::kNorms);
  add("norms", norms, 1, norms);
}

void UnitBuffers::commit(const Arena& arena, Device& device) {
  for (Buffer& buffer : buffers_) {
    buffer.tensor = arena[buffer.slot];
    buffer.filled = device.make_event();
    buffer.drained = device.make_event();
  }
}

std::span<UnitBuffers::Buffer> UnitBuffers::buffers_for(int64_t unit) {
  const Group& group = group_of_.at(unit);
  return std::span(buffers_).subspan(group.first, group.count);
}

std::vector<Tensor> UnitBuffers::tensors() const {
  std::vector<Tensor> all;
  for (const Buffer& buffer : buffers_) all.push_back(buffer.tensor);
  return all;
}

UnitBuffers::Buffer* UnitBuffers::find(int64_t unit) {
  for (Buffer& buffer : buffers_for(unit)) {
    if (buffer.holds == unit) return &buffer;
  }
  return nullptr;
}

UnitBuffers::Buffer& UnitBuffers::of(int64_t unit) {
  Buffer* const buffer = find(unit);
  TOKAMAK_CHECK(buffer != nullptr, "no buffer holds unit ", unit);
  return *buffer;
}

UnitBuffers::Buffer* UnitBuffers::available(int64_t unit, int64_t keep) {
  if (Buffer* const holding = find(unit)) return holding->users == 0 ? holding : nullptr;
  Buffer* oldest = nullptr;
  for (Buffer& buffer : buffers_for(unit)) {
    if (buffer.holds == kNone) return &buffer;
    if (buffer.users > 0 || buffer.holds == keep) continue;
    if (oldest == nullptr || buffer.last_use < oldest->last_use) oldest = &buffer;
  }
  return oldest;
}

bool UnitBuffers::has_empty(int64_t unit) {
  const auto buffers = buffers_for(unit);
  return std::any_of(buffers.begin(), buffers.end(), [](const Buffer& buffer) { return buffer.holds == kNone; });
}

UnitBuffers::Buffer& UnitBuffers::take(int64_t unit, int64_t keep) {
  Buffer* const buffer = available(unit, keep);
  TOKAMAK_CHECK(buffer != nullptr, "unit ", unit, " needs a buffer, and all that it may have are in use");
  buffer->holds = unit;
  buffer->last_use = ++uses_;
  return *buffer;
}

void UnitBuffers::forget_contents() {
  for (Buffer& buffer : buffers_) {
    TOKAMAK_CHECK(buffer.users == 0, "weights of unit ", buffer.holds, " change while in use");
    buffer.holds = kNone;
  }
}

}  // namespace tokamak
