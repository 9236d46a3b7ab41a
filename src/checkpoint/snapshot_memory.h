// Host memory for the copy of the state that a save is written from while training continues. A thread allocates it in
// pieces, because pinning takes about a second per gigabyte. It rests after each piece, so that no step loses more than
// the time of one. Starts and steps never wait for it; a save waits for the pieces that it needs, and ends the rests.
// The allocator must allow MemoryKind::kPinned from another thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "tensor/arena.h"

namespace tokamak {

class SnapshotMemory {
 public:
  struct Options {
    int64_t bytes = 0;
    int64_t piece_bytes = int64_t{64} << 20;  // of each piece but the last
    int64_t rest = 15;                        // pause after each piece, in multiples of its time to allocate
    std::string hint;                         // for the error if there is not enough
  };

  // Allocates nothing yet. `allocator` outlives this.
  SnapshotMemory(Allocator& allocator, Options options);
  // Waits for the piece that is being allocated, and frees all.
  ~SnapshotMemory();
  SnapshotMemory(const SnapshotMemory&) = delete;
  SnapshotMemory& operator=(const SnapshotMemory&) = delete;

  // Called by one thread:
  void start();            // later calls do nothing
  void expect_no_error();  // throws the thread's Error(kDevice), with bytes and hint; never waits
  // Bytes [begin, end), as far as they are in the piece of `begin`. Starts the thread if need be, and waits for that
  // piece; throws the thread's error.
  std::span<std::byte> part(int64_t begin, int64_t end);

 private:
  int64_t bytes_of(int64_t piece) const;
  void take_pieces() noexcept;  // in the thread

  Allocator& allocator_;
  const Options options_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::vector<std::byte*> pieces_;  // those allocated so far, in order
  std::optional<Error> error_;
  int64_t wanted_ = 0;  // bytes that part() was asked for: the thread rests only beyond them
  bool ends_ = false;
  std::thread thread_;  // used by the caller's thread only
};

}  // namespace tokamak
