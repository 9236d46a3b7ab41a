// Host memory for a copy of the state, which a save is written from while training goes on. A thread takes it in pieces,
// because pinning tens of gigabytes takes as many seconds: no start and no step waits for it, and a save only for the
// pieces that it needs. The allocator must allow MemoryKind::kPinned from a thread of ours.
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
    int64_t piece_bytes = int64_t{1} << 30;  // of each piece but the last
    std::string hint;                        // what would help where there is not enough
  };

  // Takes nothing yet. `allocator` outlives this.
  SnapshotMemory(Allocator& allocator, Options options);
  // Waits for the piece that is being taken, and gives back all. Nothing may read them any more.
  ~SnapshotMemory();
  SnapshotMemory(const SnapshotMemory&) = delete;
  SnapshotMemory& operator=(const SnapshotMemory&) = delete;

  // By one thread:
  void start();  // once; later calls do nothing
  // Throws what the thread has failed with so far, and does not wait: Error(kDevice) with the bytes and the hint.
  void expect_no_error();
  // Bytes [begin, end) as far as they lie in the piece of `begin`. Starts, waits for that piece, or throws what the
  // thread has failed with.
  std::span<std::byte> part(int64_t begin, int64_t end);

 private:
  int64_t bytes_of(int64_t piece) const;
  void take_pieces() noexcept;  // in the thread

  Allocator& allocator_;
  const Options options_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::vector<std::byte*> pieces_;  // in order, as far as they are taken
  std::optional<Error> error_;
  bool ends_ = false;
  std::thread thread_;  // of the caller's
};

}  // namespace tokamak
