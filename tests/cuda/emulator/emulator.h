// Emulates a GPU on one CPU thread, to run cuda/'s kernels without one. A block's threads are fibers that switch only
// at barriers and warp collectives; blocks run one after the other. It tests correctness only: indices, barriers,
// fragment layouts, asynchronous copies without a wait. It does not model speed, memory order between blocks, or the
// limits of a real GPU.
//
// It detects faults that a GPU may hide. All threads must reach a barrier, and all lanes a collective. Memory starts as
// NaN, which shows reads before writes. The host cannot touch device memory outside of kernels and copies. Threads and
// blocks run in the order of TOKAMAK_EMULATOR_ORDER=forward, reverse or random, which shows missing barriers and blocks
// that need an order. Streams defer their work, which shows missing waits (streams.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3() = default;
  dim3(unsigned x_, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

namespace emulator {

struct Place {
  dim3 thread, block;  // threadIdx, blockIdx
};

const Place& place();      // of the running fiber
const dim3& block_size();  // blockDim
const dim3& grid_size();   // gridDim
unsigned char* shared_memory();

// Runs `body` for every thread of every block of the grid; `name` for errors. A broken rule ends the process.
void run(const char* name, dim3 grid, unsigned threads, size_t shared_bytes, const std::function<void()>& body);

// Chooses the next work at random with TOKAMAK_EMULATOR_ORDER=random; else null.
std::mt19937* random_order();

void sync_block();
void sync_warp();

constexpr int kLanes = 32;
constexpr size_t kSlotBytes = 64;
int lane();
// The slot of a lane of this warp. Callers need a sync_warp between put_slot and the reads, and another before the next
// put_slot.
unsigned char* slot(int lane);

template <class T>
T exchange(const T& value, int source) {
  static_assert(sizeof(T) <= kSlotBytes);
  std::memcpy(slot(lane()), &value, sizeof(T));
  sync_warp();
  T out;
  std::memcpy(&out, slot(source), sizeof(T));
  sync_warp();
  return out;
}

// cp.async: copies take place when they are waited for, not before.
void copy_async(void* to, const void* from, size_t bytes, bool valid);  // both addresses are multiples of `bytes`
void commit_copies();
void wait_for_copies(int younger);

// Device memory: readable and writable only while a kernel or a copy of the runtime runs.
void* allocate(size_t bytes);
void release(void* memory);
class Access {
 public:
  Access();
  ~Access();
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;
};

}  // namespace emulator
