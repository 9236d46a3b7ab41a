#include "tensor/arena.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <set>

#include "base/error.h"

using namespace tokamak;

namespace {

// Counts what is taken and given back.
class Counting : public Allocator {
 public:
  std::byte* allocate(int64_t bytes, MemoryKind) override {
    ++calls;
    live += bytes;
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(256, static_cast<size_t>(bytes)));
    std::memset(memory, 0, static_cast<size_t>(bytes));
    blocks.insert(memory);
    return memory;
  }
  void release(std::byte* memory, int64_t bytes, MemoryKind) noexcept override {
    live -= bytes;
    std::free(memory);
  }
  int calls = 0;
  std::set<void*> blocks;
  int64_t live = 0;
};

}  // namespace

TEST_CASE("a plan is committed in one block of each kind, but one for each exchanged entry, and given back whole") {
  MemoryPlan plan;
  const auto a = plan.add("a/x", DType::kF32, Shape{3});
  const auto b = plan.add("a/y", DType::kBF16, Shape{100, 7});
  const auto p = plan.add("pinned", DType::kI32, Shape{5}, MemoryKind::kPinned);
  const auto s = plan.add("sent", DType::kF32, Shape{65}, MemoryKind::kExchanged);
  const auto r = plan.add("received", DType::kF32, Shape{130}, MemoryKind::kExchanged);
  Counting memory;
  {
    const Arena arena(plan, memory);
    CHECK(memory.calls == 4);
    CHECK(memory.live == plan.total_bytes());
    CHECK(arena[a].text() == "F32 (3)");
    CHECK(arena[b].text() == "BF16 (100, 7)");
    CHECK(arena[p].text() == "I32 (5)");
    CHECK(memory.blocks.count(arena[s].data()) == 1);
    CHECK(memory.blocks.count(arena[r].data()) == 1);
    CHECK(reinterpret_cast<uintptr_t>(arena[b].data()) % 256 == 0);
    std::memset(arena[a].data(), 1, 12);
    CHECK(static_cast<std::byte*>(arena[b].data())[0] == std::byte{0});  // no overlap
    CHECK_THROWS_AS(arena[MemoryPlan::Slot{9}], Error);
    CHECK_THROWS_AS(arena[MemoryPlan::Slot{}], Error);
  }
  CHECK(memory.live == 0);
}

TEST_CASE("what is taken later is planned and reported, and not committed") {
  MemoryPlan plan;
  const auto a = plan.add("a", DType::kF32, Shape{64}, MemoryKind::kPinned);
  const auto later = plan.add("later/x", DType::kF32, Shape{640}, MemoryKind::kPinned, Taken::kLater);
  const auto b = plan.add("b", DType::kF32, Shape{64}, MemoryKind::kPinned);
  CHECK(plan.total_bytes(MemoryKind::kPinned) == 2 * 256 + 2560);
  CHECK(plan.bytes_at_commit(MemoryKind::kPinned) == 2 * 256);
  CHECK_THAT(plan.report(), Catch::Contains("later") && Catch::Contains("2.50 KiB"));
  Counting memory;
  const Arena arena(plan, memory);
  CHECK(memory.live == 2 * 256);
  CHECK(static_cast<std::byte*>(arena[b].data()) == static_cast<std::byte*>(arena[a].data()) + 256);
  CHECK_THROWS_WITH(arena[later], Catch::Contains("taken later"));
}

TEST_CASE("the report sums groups, and puts numbered buffers on one line") {
  MemoryPlan plan;
  plan.add("state/master", DType::kF32, Shape{1 << 20});
  plan.add("acts/layer.0 qkv", DType::kBF16, Shape{1 << 20});
  plan.add("acts/layer.1 qkv", DType::kBF16, Shape{1 << 20});
  const std::string report = plan.report();
  CHECK(report.find("layer.* qkv") != std::string::npos);
  CHECK(report.find("2 x BF16 (1048576)") != std::string::npos);
  CHECK(report.find("8.00 MiB") != std::string::npos);  // total
  CHECK(plan.total_bytes() == 8 << 20);
}
