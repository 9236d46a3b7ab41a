#include "checkpoint/snapshot_memory.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "base/service_thread.h"

namespace tokamak {

SnapshotMemory::SnapshotMemory(Allocator& allocator, Options options)
    : allocator_(allocator), options_(std::move(options)) {
  TOKAMAK_CHECK(options_.bytes >= 0 && options_.piece_bytes > 0, options_.bytes, " bytes in pieces of ",
                options_.piece_bytes);
}

SnapshotMemory::~SnapshotMemory() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  for (size_t i = 0; i < pieces_.size(); ++i) {
    allocator_.release(pieces_[i], bytes_of(i), MemoryKind::kPinned);
  }
}

int64_t SnapshotMemory::bytes_of(int64_t piece) const {
  return std::min(options_.piece_bytes, options_.bytes - piece * options_.piece_bytes);
}

void SnapshotMemory::start() {
  if (!thread_.joinable()) thread_ = start_service_thread("snapshot", [this] { take_pieces(); });
}

void SnapshotMemory::take_pieces() noexcept {
  using Clock = std::chrono::steady_clock;
  let_others_run_first();  // zeroing pages takes seconds of a core that steps need, unless a save waits
  int64_t taken = 0;       // bytes
  for (int64_t piece = 0; piece * options_.piece_bytes < options_.bytes; ++piece) {
    const auto begin = Clock::now();
    const int64_t bytes = bytes_of(piece);
    std::byte* memory = nullptr;
    std::optional<Error> error;
    try {
      memory = allocator_.allocate(bytes, MemoryKind::kPinned);
    } catch (const std::exception& reason) {
      const auto* const ours = dynamic_cast<const Error*>(&reason);
      error.emplace(ours != nullptr ? ours->kind() : Kind::kDevice,
                    str("no host memory for the snapshot that checkpoints are written from: ",
                        human_bytes(options_.bytes), " in all, ", human_bytes(taken), " taken; ", reason.what()),
                    options_.hint);
    }
    const auto rest = options_.rest * (Clock::now() - begin);
    std::unique_lock lock(mutex_);
    if (memory != nullptr) pieces_.push_back(memory);
    error_ = std::move(error);
    changed_.notify_all();
    taken += bytes;
    if (!error_) changed_.wait_for(lock, rest, [&] { return ends_ || wanted_ > taken; });
    if (ends_ || error_) return;
  }
}

void SnapshotMemory::expect_no_error() {
  const std::lock_guard lock(mutex_);
  if (error_) throw Error(*error_);
}

std::span<std::byte> SnapshotMemory::part(int64_t begin, int64_t end) {
  TOKAMAK_CHECK(0 <= begin && begin < end && end <= options_.bytes, begin, " to ", end, " of ", options_.bytes);
  start();
  const int64_t piece = begin / options_.piece_bytes, first = piece * options_.piece_bytes;
  std::unique_lock lock(mutex_);
  wanted_ = std::max(wanted_, end);
  changed_.notify_all();
  changed_.wait(lock, [&] { return error_ || std::ssize(pieces_) > piece; });
  if (std::ssize(pieces_) <= piece) throw Error(*error_);
  const int64_t stop = std::min(end - first, bytes_of(piece));
  return {pieces_[piece] + (begin - first), static_cast<size_t>(stop - (begin - first))};
}

}  // namespace tokamak
