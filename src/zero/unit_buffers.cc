#include "zero/unit_buffers.h"

#include <algorithm>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr size_t kSharedLayerBuffers = 2;  // one in use, one being gathered

}  // namespace

UnitBuffers::UnitBuffers(const std::string& group, const ParamTable& table, const std::vector<int64_t>& elements,
                         int64_t own, DType dtype, MemoryPlan& plan)
    : buffer_of_(table.units.size()) {
  const auto units_of = [&](UnitKind kind) {
    std::vector<size_t> units;
    for (size_t u = 0; u < table.units.size(); ++u) {
      if (table.units[u].kind == kind) units.push_back(u);
    }
    return units;
  };
  // A buffer for each of the first `alone` units; the others take turns in `shared` ones.
  const auto add = [&](const std::string& name, const std::vector<size_t>& units, size_t alone, size_t shared) {
    int64_t largest = 0;
    for (const size_t u : units) largest = std::max(largest, elements[u]);
    const size_t first = buffers_.size(), count = std::min(units.size(), alone + shared);
    for (size_t i = 0; i < count; ++i) {
      Buffer buffer;
      buffer.slot =
          plan.add(str(group, "/", name, count > 1 ? str(".", i) : ""), dtype, Shape{largest}, MemoryKind::kExchanged);
      buffers_.push_back(std::move(buffer));
    }
    for (size_t i = 0; i < units.size(); ++i) {
      buffer_of_[units[i]] = first + (i < alone ? i : alone + (i - alone) % shared);
    }
  };
  const std::vector<size_t> layers = units_of(UnitKind::kLayer);
  const size_t alone = std::min(layers.size(), static_cast<size_t>(own));
  std::vector<size_t> vocabulary = units_of(UnitKind::kEmbedding);
  const std::vector<size_t> head = units_of(UnitKind::kHead);
  vocabulary.insert(vocabulary.end(), head.begin(), head.end());
  add("vocabulary", vocabulary, alone < layers.size() ? 0 : vocabulary.size(), 1);
  // Layers that follow each other take turns: one computes while the next is gathered.
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

UnitBuffers::Buffer& UnitBuffers::of(int64_t unit) { return buffers_[buffer_of_.at(static_cast<size_t>(unit))]; }

UnitBuffers::Buffer& UnitBuffers::take(int64_t unit) {
  Buffer& buffer = of(unit);
  TOKAMAK_CHECK(buffer.users == 0, "unit ", unit, " needs the buffer in which unit ", buffer.holds, " is in use");
  buffer.holds = unit;
  return buffer;
}

void UnitBuffers::forget_contents() {
  for (Buffer& buffer : buffers_) {
    TOKAMAK_CHECK(buffer.users == 0, "weights of unit ", buffer.holds, " change while in use");
    buffer.holds = -1;
  }
}

}  // namespace tokamak
