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

// "layer.3 qkv" -> "layer.* qkv": buffers whose names differ by a number share a line of the report.
std::string without_number(const std::string& name) {
  const size_t dot = name.find('.');
  if (dot == std::string::npos) return name;
  const size_t end = name.find_first_not_of("0123456789", dot + 1);
  if (end == dot + 1) return name;
  return name.substr(0, dot + 1) + "*" + (end == std::string::npos ? "" : name.substr(end));
}

}  // namespace

int64_t committed_bytes(DType dtype, const Shape& shape) { return aligned(shape.count() * size_of(dtype)); }

MemoryPlan::Slot MemoryPlan::add(std::string name, DType dtype, Shape shape, MemoryKind kind, Taken taken) {
  entries_.push_back({std::move(name), dtype, shape, kind, taken});
  return {static_cast<int64_t>(entries_.size()) - 1};
}

int64_t MemoryPlan::total_bytes() const {
  int64_t total = 0;
  for (const MemoryKind kind : kMemoryKinds) total += total_bytes(kind);
  return total;
}

int64_t MemoryPlan::total_bytes(MemoryKind kind) const {
  int64_t total = 0;
  for (const Entry& entry : entries_) {
    if (entry.kind == kind) total += aligned(entry.bytes());
  }
  return total;
}

int64_t MemoryPlan::bytes_at_commit(MemoryKind kind) const {
  int64_t total = 0;
  for (const Entry& entry : entries_) {
    if (entry.kind == kind && entry.taken == Taken::kAtCommit) total += aligned(entry.bytes());
  }
  return total;
}

std::vector<MemoryPlan::Group> MemoryPlan::groups() const {
  const auto find_or_add = [](auto& list, const std::string& name) -> auto& {
    const auto found = std::find_if(list.begin(), list.end(), [&](const auto& item) { return item.name == name; });
    if (found != list.end()) return *found;
    list.push_back({name, 0, {}});
    return list.back();
  };
  std::vector<Group> groups;
  for (const Entry& entry : entries_) {
    Group& group = find_or_add(groups, group_of(entry.name));
    group.bytes += aligned(entry.bytes());
    if (entry.name == group.name) continue;
    Member& member = find_or_add(group.members, without_number(entry.name.substr(group.name.size() + 1)));
    member.bytes += entry.bytes();
    ++member.buffers;
    member.detail = str(name_of(entry.dtype), " ", entry.shape.text());
  }
  return groups;
}

std::string MemoryPlan::report() const {
  std::ostringstream out;
  const auto print = [&out](const std::string& name, int64_t bytes, const std::string& detail) {
    out << "  " << std::left << std::setw(28) << name << std::right << std::setw(12) << human_bytes(bytes)
        << (detail.empty() ? "" : "   ") << detail << "\n";
  };
  for (const Group& group : groups()) {
    print(group.name, group.bytes, "");
    for (const Member& member : group.members) {
      if (member.bytes * 50 < group.bytes) continue;  // omit small members: the table stays short
      print("  " + member.name, member.bytes, str(member.buffers > 1 ? str(member.buffers, " x ") : "", member.detail));
    }
  }
  print("total", total_bytes(), "");
  return out.str();
}

Arena::Arena(const MemoryPlan& plan, Allocator& allocator) : allocator_(allocator) {
  try {
    std::byte* next[std::size(kMemoryKinds)] = {};
    for (const MemoryKind kind : kMemoryKinds) {
      if (kind != MemoryKind::kExchanged) next[static_cast<size_t>(kind)] = allocate(plan.bytes_at_commit(kind), kind);
    }
    for (const auto& entry : plan.entries()) {
      if (entry.taken == Taken::kLater) {
        tensors_.emplace_back();
        continue;
      }
      std::byte*& at = next[static_cast<size_t>(entry.kind)];
      if (entry.kind == MemoryKind::kExchanged) at = allocate(aligned(entry.bytes()), entry.kind);
      tensors_.emplace_back(at, entry.dtype, entry.shape);
      at += aligned(entry.bytes());
    }
  } catch (...) {
    release();
    throw;
  }
}

Arena::~Arena() { release(); }

std::byte* Arena::allocate(int64_t bytes, MemoryKind kind) {
  if (bytes == 0) return nullptr;
  blocks_.push_back({allocator_.allocate(bytes, kind), bytes, kind});
  return blocks_.back().memory;
}

void Arena::release() noexcept {
  for (const Block& block : blocks_) allocator_.release(block.memory, block.bytes, block.kind);
}

Tensor Arena::operator[](MemoryPlan::Slot slot) const {
  TOKAMAK_CHECK(0 <= slot.index && slot.index < static_cast<int64_t>(tensors_.size()), "slot ", slot.index);
  const Tensor tensor = tensors_[static_cast<size_t>(slot.index)];
  TOKAMAK_CHECK(tensor || tensor.count() == 0, "slot ", slot.index, " is taken later");
  return tensor;
}

}  // namespace tokamak
