// Memory of a run: every buffer is planned by name before the first allocation, committed once, reported by name.
// The plan is pure arithmetic, so `tokamak plan` can print the plan of a cluster on any machine.
#pragma once

#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace tokamak {

enum class MemoryKind {
  kDevice,
  kExchanged,  // device memory for communication between ranks: a device may allocate it differently
  kPinned,     // host memory that the device copies from and to directly
};
inline constexpr MemoryKind kMemoryKinds[] = {MemoryKind::kDevice, MemoryKind::kExchanged, MemoryKind::kPinned};

// When a buffer's memory is allocated. kLater: another owner than the arena allocates it, after commit.
enum class Taken { kAtCommit, kLater };

int64_t committed_bytes(DType dtype, const Shape& shape);  // of a buffer in an arena, with alignment

class MemoryPlan {
 public:
  struct Slot {
    int64_t index = -1;
  };
  struct Entry {
    std::string name;  // "group/what", for example "parameters/master"
    DType dtype;
    Shape shape;
    MemoryKind kind;
    Taken taken = Taken::kAtCommit;
    int64_t bytes() const { return shape.count() * size_of(dtype); }
  };

  Slot add(std::string name, DType dtype, Shape shape, MemoryKind kind = MemoryKind::kDevice,
           Taken taken = Taken::kAtCommit);

  const std::vector<Entry>& entries() const { return entries_; }
  int64_t total_bytes() const;  // with alignment, also of buffers that are allocated later
  int64_t total_bytes(MemoryKind kind) const;
  int64_t bytes_at_commit(MemoryKind kind) const;
  // Bytes of each group (the name up to the first '/') in order of first appearance, and of its members by name.
  // Members whose names differ by a number are one.
  struct Member {
    std::string name;
    int64_t bytes = 0, buffers = 0;
    std::string detail;  // "F32 (4096, 1024)"
  };
  struct Group {
    std::string name;
    int64_t bytes = 0;
    std::vector<Member> members;
  };
  std::vector<Group> groups() const;
  std::string report() const;  // groups() as a table, without the smaller members

 private:
  std::vector<Entry> entries_;
};

// Allocates memory, in bytes, aligned to at least 256. The same object must release it.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // Memory is zeroed, except for kPinned, which any thread may allocate. Error(kDevice) if out of memory.
  virtual std::byte* allocate(int64_t bytes, MemoryKind kind) = 0;
  virtual void release(std::byte* memory, int64_t bytes, MemoryKind kind) noexcept = 0;
};

// Owns the memory of one committed plan, without later allocations. Each memory kind is one block, but each exchanged
// entry is a separate block, because communication libraries register whole blocks.
class Arena {
 public:
  Arena(const MemoryPlan& plan, Allocator& allocator);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  Tensor operator[](MemoryPlan::Slot slot) const;  // a slot that is allocated at commit

 private:
  struct Block {
    std::byte* memory;
    int64_t bytes;
    MemoryKind kind;
  };
  std::byte* allocate(int64_t bytes, MemoryKind kind);
  void release() noexcept;

  Allocator& allocator_;
  std::vector<Block> blocks_;
  std::vector<Tensor> tensors_;
};

}  // namespace tokamak
