#include "zero/unit_buffers.h"

#include <algorithm>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr size_t kSharedLayerBuffers = 2;  // one in use, one being gathered

const char* name_of_kind(UnitKind kind) {
  switch (kind) {
    case UnitKind::kEmbedding:
      return "embedding";
    case UnitKind::kLayer:
      return "layer";
    case UnitKind::kHead:
      return "head";
    case UnitKind::kNorms:
      return "norms";
  }
  return "?";
}

}  // namespace

UnitBuffers::UnitBuffers(const std::string& group, const ParamTable& table, const std::vector<int64_t>& elements,
                         int64_t own, DType dtype, MemoryPlan& plan)
    : buffer_of_(table.units.size()) {
  for (const UnitKind kind : {UnitKind::kEmbedding, UnitKind::kLayer, UnitKind::kHead, UnitKind::kNorms}) {
    std::vector<size_t> units;
    int64_t largest = 0;
    for (size_t u = 0; u < table.units.size(); ++u) {
      if (table.units[u].kind != kind) continue;
      units.push_back(u);
      largest = std::max(largest, elements[u]);
    }
    const size_t first = buffers_.size();
    const size_t alone = kind == UnitKind::kLayer ? std::min(units.size(), static_cast<size_t>(own)) : 0;
    const size_t shared = std::min(units.size() - alone, kind == UnitKind::kLayer ? kSharedLayerBuffers : 1);
    for (size_t i = 0; i < alone + shared; ++i) {
      const std::string number = kind == UnitKind::kLayer ? str(".", i) : "";
      Buffer buffer;
      buffer.slot = plan.add(group + "/" + name_of_kind(kind) + number, dtype, Shape{largest}, MemoryKind::kExchanged);
      buffers_.push_back(std::move(buffer));
    }
    // Layers that follow each other take turns: one computes while the next is gathered.
    for (size_t i = 0; i < units.size(); ++i) {
      buffer_of_[units[i]] = first + (i < alone ? i : alone + (i - alone) % shared);
    }
  }
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
