#include "zero/unit_buffers.h"

#include <algorithm>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr size_t kSharedLayerBuffers = 2;  // one in use, one being gathered

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
  // A buffer for each of the first `alone` units; the others share so many.
  const auto add = [&](const std::string& name, const std::vector<size_t>& units, size_t alone, size_t shared) {
    const size_t first = buffers_.size(), count = std::min(units.size(), alone + shared);
    for (size_t i = 0; i < units.size(); ++i) {
      group_of_[units[i]] = i < alone ? Group{first + i, 1} : Group{first + alone, count - alone};
    }
    int64_t largest = 0;
    for (const size_t u : units) largest = std::max(largest, elements[u]);
    for (size_t i = 0; i < count; ++i) {
      Buffer buffer;
      buffer.slot =
          plan.add(str(group, "/", name, count > 1 ? str(".", i) : ""), dtype, Shape{largest}, MemoryKind::kExchanged);
      buffers_.push_back(std::move(buffer));
    }
  };
  const std::vector<size_t> layers = units_of(UnitKind::kLayer);
  const auto all = static_cast<int64_t>(layers.size()) / table.units_per_layer;
  const auto alone = static_cast<size_t>(std::min(all, own) * table.units_per_layer);
  std::vector<size_t> vocabulary = units_of(UnitKind::kEmbedding);
  const std::vector<size_t> head = units_of(UnitKind::kHead);
  vocabulary.insert(vocabulary.end(), head.begin(), head.end());
  add("vocabulary", vocabulary, alone < layers.size() ? 0 : vocabulary.size(), 1);
  add("layer", layers, alone, kSharedLayerBuffers);
  add("norms", units_of(UnitKind::kNorms), 0, 1);
}

void UnitBuffers::commit(const Arena& arena, Device& device) {
  for (Buffer& buffer : buffers_) {
    buffer.tensor = arena[buffer.slot];
    buffer.filled = device.make_event();
    buffer.drained = device.make_event();
  }
}

std::span<UnitBuffers::Buffer> UnitBuffers::buffers_for(int64_t unit) {
  const Group& group = group_of_.at(static_cast<size_t>(unit));
  return std::span(buffers_).subspan(group.first, group.count);
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
