#include "tensor/arena.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr int64_t kAlignment = 256;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::string group_of(const std::string& name) { return name.substr(0, name.find('/')); }

}  // namespace

MemoryPlan::Slot MemoryPlan::add(std::string name, DType dtype, Shape shape, MemoryKind kind) {
  entries_.push_back({std::move(name), dtype, shape, kind});
  return {static_cast<int64_t>(entries_.size()) - 1};
}

int64_t MemoryPlan::total_bytes() const {
  int64_t total = 0;
  for (const Entry& entry : entries_) total += aligned(entry.bytes());
  return total;
}

std::string MemoryPlan::report() const {
  std::vector<std::pair<std::string, int64_t>> groups;
  for (const Entry& entry : entries_) {
    const std::string group = group_of(entry.name);
    auto found = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == group; });
    if (found == groups.end()) found = groups.insert(groups.end(), {group, 0});
    found->second += aligned(entry.bytes());
  }
  std::ostringstream out;
  const auto line = [&out](const std::string& name, int64_t bytes, const std::string& detail) {
    out << "  " << std::left << std::setw(28) << name << std::right << std::setw(12)
        << human_bytes(static_cast<double>(bytes)) << (detail.empty() ? "" : "   ") << detail << "\n";
  };
  for (const auto& [group, bytes] : groups) {
    line(group, bytes, "");
    for (const Entry& entry : entries_) {
      // Entries below a fiftieth of the group only make the table long.
      if (group_of(entry.name) != group || entry.bytes() * 50 < bytes || entry.name == group) continue;
      line("  " + entry.name.substr(std::min(entry.name.size(), group.size() + 1)), entry.bytes(),
           str(name_of(entry.dtype), " ", entry.shape.text()));
    }
  }
  line("total", total_bytes(), "");
  return out.str();
}

Arena::Arena(const MemoryPlan& plan, Allocator& allocator) : allocator_(allocator) {
  for (const MemoryKind kind : {MemoryKind::kDevice, MemoryKind::kPinned}) {
    for (const auto& entry : plan.entries()) {
      if (entry.kind == kind) block(kind).bytes += aligned(entry.bytes());
    }
    if (block(kind).bytes > 0) block(kind).memory = allocator_.allocate(block(kind).bytes, kind);
  }
  int64_t used[2] = {0, 0};
  for (const auto& entry : plan.entries()) {
    int64_t& begin = used[entry.kind == MemoryKind::kDevice ? 0 : 1];
    tensors_.emplace_back(block(entry.kind).memory + begin, entry.dtype, entry.shape);
    begin += aligned(entry.bytes());
  }
}

Arena::~Arena() {
  for (const MemoryKind kind : {MemoryKind::kDevice, MemoryKind::kPinned}) {
    if (block(kind).memory != nullptr) allocator_.release(block(kind).memory, block(kind).bytes, kind);
  }
}

Tensor Arena::operator[](MemoryPlan::Slot slot) const {
  TOKAMAK_CHECK(0 <= slot.index && slot.index < static_cast<int64_t>(tensors_.size()), "slot ", slot.index);
  return tensors_[static_cast<size_t>(slot.index)];
}

}  // namespace tokamak
