#include "emulator.h"

#include <sys/mman.h>

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace emulator {

namespace {

namespace context = boost::context;

constexpr size_t kStackBytes = 64 << 10;
constexpr size_t kMaxShared = 228 << 10;

[[noreturn]] void broken(const char* rule);

struct Copy {
  void* to;
  const void* from;
  size_t bytes;
  bool valid;
};

// Threads that wait for each other: a warp, or the block.
struct Group {
  int members = 0;  // threads that have not returned
  int arrived = 0;
  int returned = 0;
  uint64_t generation = 0;

  void open() {
    arrived = 0;
    ++generation;
  }
};

struct Fiber {
  context::fiber context;
  Place place;
  int lane = 0;
  Group* warp = nullptr;
  Group* waits_for = nullptr;
  uint64_t generation = 0;  // of `waits_for` when this fiber began to wait
  bool done = true;
  std::vector<std::vector<Copy>> groups;  // of asynchronous copies, oldest first
  std::vector<Copy> uncommitted;
};

// The order of a launch's blocks, a block's warps and a warp's lanes, as far as barriers leave it free.
enum class Order { kForward, kReverse, kRandom };

struct Machine {
  const char* kernel = "";
  const std::function<void()>* body = nullptr;
  dim3 grid, block;
  std::vector<std::unique_ptr<Fiber>> fibers;  // kept from launch to launch
  std::vector<Group> warps;
  Group all;
  std::vector<unsigned char> slots;
  alignas(128) unsigned char shared[kMaxShared];
  context::fiber scheduler;
  Fiber* running = nullptr;
  Order order = Order::kForward;
  std::mt19937 random;
  std::vector<unsigned> warp_order;
};

Machine& machine() {
  static const auto instance = [] {
    auto m = std::make_unique<Machine>();
    const char* named = std::getenv("TOKAMAK_EMULATOR_ORDER");
    const std::string_view order = named == nullptr ? "forward" : named;
    if (order == "reverse") m->order = Order::kReverse;
    if (order == "random") {
      const char* asked = std::getenv("TOKAMAK_EMULATOR_SEED");
      const unsigned seed = asked != nullptr ? static_cast<unsigned>(std::stoul(asked)) : std::random_device()();
      std::fprintf(stderr, "emulator: threads, streams and graphs in random order, TOKAMAK_EMULATOR_SEED=%u\n", seed);
      m->order = Order::kRandom;
      m->random.seed(seed);
    }
    return m;
  }();
  return *instance;
}

void broken(const char* rule) {
  const Machine& m = machine();
  const Place& p = m.running->place;
  std::fprintf(stderr, "emulator: %s: %s (block %u %u %u, thread %u)\n", m.kernel, rule, p.block.x, p.block.y,
               p.block.z, p.thread.x);
  std::abort();
}

void back_to_scheduler() {
  Machine& m = machine();
  m.scheduler = std::move(m.scheduler).resume();
}

void wait_in(Group& group) {
  Machine& m = machine();
  Fiber& fiber = *m.running;
  if (++group.arrived == group.members) return group.open();
  fiber.waits_for = &group;
  fiber.generation = group.generation;
  back_to_scheduler();
}

// A fiber's life: one kernel after the other.
context::fiber live(context::fiber&& scheduler) {
  Machine& m = machine();
  m.scheduler = std::move(scheduler);
  for (;;) {
    (*m.body)();
    Fiber& fiber = *m.running;
    fiber.done = true;
    for (Group* group : {fiber.warp, &m.all}) {
      ++group->returned;
      // A barrier counts those that have returned as arrived.
      if (--group->members > 0 && group->arrived == group->members) group->open();
    }
    back_to_scheduler();
  }
}

bool last_first(Machine& m) { return m.order == Order::kReverse || (m.order == Order::kRandom && m.random() % 2 == 0); }

void order_warps(Machine& m) {
  m.warp_order.resize(m.warps.size());
  std::iota(m.warp_order.begin(), m.warp_order.end(), 0U);
  if (m.order == Order::kRandom) std::shuffle(m.warp_order.begin(), m.warp_order.end(), m.random);
  if (m.order == Order::kReverse) std::reverse(m.warp_order.begin(), m.warp_order.end());
}

void run_block(dim3 block, unsigned threads) {
  Machine& m = machine();
  std::memset(m.shared, 0xFF, sizeof(m.shared));  // NaN
  m.all = {.members = static_cast<int>(threads)};
  m.warps.assign((threads + kLanes - 1) / kLanes, Group{});
  for (unsigned t = 0; t < threads; ++t) {
    Fiber& fiber = *m.fibers[t];
    fiber.place = {dim3(t, 0, 0), block};
    fiber.lane = static_cast<int>(t % kLanes);
    fiber.warp = &m.warps[t / kLanes];
    fiber.warp->members++;
    fiber.waits_for = nullptr;
    fiber.done = false;
    fiber.groups.clear();
    fiber.uncommitted.clear();
  }
  // A warp runs until it waits for others, so the first is as far ahead of the last as barriers allow.
  order_warps(m);
  for (;;) {
    bool moved = false, waiting = false;
    for (const unsigned warp : m.warp_order) {
      const unsigned first = warp * kLanes, end = std::min(first + kLanes, threads);
      const bool lanes_reversed = last_first(m);
      for (bool again = true; again;) {
        again = false;
        for (unsigned i = first; i < end; ++i) {
          Fiber& fiber = *m.fibers[lanes_reversed ? first + end - 1 - i : i];
          if (fiber.done) continue;
          if (fiber.waits_for != nullptr && fiber.waits_for->generation == fiber.generation) {
            waiting = true;
            continue;
          }
          fiber.waits_for = nullptr;
          m.running = &fiber;
          fiber.context = std::move(fiber.context).resume();
          again = moved = true;
        }
      }
    }
    if (!moved && !waiting) return;
    if (!moved) broken("threads wait at different barriers");
  }
}

// Device memory by address.
struct Region {
  size_t bytes;
};
std::map<void*, Region>& regions() {
  static std::map<void*, Region> all;
  return all;
}
int access_depth = 0;

void protect(int rights) {
  for (const auto& [memory, region] : regions()) mprotect(memory, region.bytes, rights);
}

}  // namespace

const Place& place() { return machine().running->place; }
const dim3& block_size() { return machine().block; }
const dim3& grid_size() { return machine().grid; }
unsigned char* shared_memory() { return machine().shared; }
int lane() { return machine().running->lane; }

unsigned char* slot(int lane) {
  Machine& m = machine();
  return m.slots.data() + (m.running->place.thread.x / kLanes * kLanes + static_cast<unsigned>(lane)) * kSlotBytes;
}

std::mt19937* random_order() { return machine().order == Order::kRandom ? &machine().random : nullptr; }

void sync_block() { wait_in(machine().all); }

void sync_warp() {
  Group& warp = *machine().running->warp;
  if (warp.returned > 0) broken("a warp's collective, and lanes have returned");
  if (warp.members != kLanes) broken("a warp's collective, and the warp is not full");
  wait_in(warp);
}

void copy_async(void* to, const void* from, size_t bytes, bool valid) {
  if (reinterpret_cast<uintptr_t>(to) % bytes != 0 || (valid && reinterpret_cast<uintptr_t>(from) % bytes != 0)) {
    broken("an asynchronous copy that is not aligned to its size");
  }
  machine().running->uncommitted.push_back({to, from, bytes, valid});
}

void commit_copies() {
  Fiber& fiber = *machine().running;
  fiber.groups.push_back(std::move(fiber.uncommitted));
  fiber.uncommitted.clear();
}

void wait_for_copies(int younger) {
  Fiber& fiber = *machine().running;
  while (fiber.groups.size() > static_cast<size_t>(younger)) {
    for (const Copy& copy : fiber.groups.front()) {
      if (copy.valid) {
        std::memcpy(copy.to, copy.from, copy.bytes);
      } else {
        std::memset(copy.to, 0, copy.bytes);
      }
    }
    fiber.groups.erase(fiber.groups.begin());
  }
}

void run(const char* name, dim3 grid, unsigned threads, size_t shared_bytes, const std::function<void()>& body) {
  const Access access;
  Machine& m = machine();
  m.kernel = name;
  m.body = &body;
  m.grid = grid;
  m.block = dim3(threads);
  if (threads == 0 || threads > 1024 || shared_bytes > kMaxShared) {
    std::fprintf(stderr, "emulator: %s: %u threads, %zu bytes of shared memory\n", name, threads, shared_bytes);
    std::abort();
  }
  while (m.fibers.size() < threads) {
    m.fibers.push_back(std::make_unique<Fiber>());
    m.fibers.back()->context = context::fiber(std::allocator_arg, context::fixedsize_stack(kStackBytes), live);
    m.slots.resize(m.fibers.size() * kSlotBytes);
  }
  const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
  const bool blocks_reversed = last_first(m);
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t at = blocks_reversed ? blocks - 1 - i : i, above = at / grid.x;
    run_block(dim3(static_cast<unsigned>(at % grid.x), static_cast<unsigned>(above % grid.y),
                   static_cast<unsigned>(above / grid.y)),
              threads);
  }
}

void* allocate(size_t bytes) {
  // In huge pages where it is large: to protect thousands of small ones around a kernel takes longer than the kernel.
  constexpr size_t kHuge = size_t{2} << 20;
  const size_t pad = bytes < kHuge ? 0 : kHuge;
  if (pad > 0) bytes = (bytes + kHuge - 1) / kHuge * kHuge;
  void* memory = mmap(nullptr, bytes + pad, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (pad > 0) {
    auto* const begin = static_cast<std::byte*>(memory);
    const size_t before = (kHuge - reinterpret_cast<uintptr_t>(memory) % kHuge) % kHuge;
    if (before > 0) munmap(begin, before);
    munmap(begin + before + bytes, pad - before);
    memory = begin + before;
    madvise(memory, bytes, MADV_HUGEPAGE);
  }
  std::memset(memory, 0xFF, bytes);  // NaN
  if (access_depth == 0) mprotect(memory, bytes, PROT_NONE);
  regions()[memory] = {bytes};
  return memory;
}

void release(void* memory) {
  const auto at = regions().find(memory);
  if (at == regions().end()) return;
  munmap(memory, at->second.bytes);
  regions().erase(at);
}

Access::Access() {
  if (access_depth++ == 0) protect(PROT_READ | PROT_WRITE);
}
Access::~Access() {
  if (--access_depth == 0) protect(PROT_NONE);
}

}  // namespace emulator
