#include "checkpoint/snapshot_memory.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace tokamak {

namespace {

constexpr int64_t kElementBytes = sizeof(float);

}  // namespace

SnapshotMemory::SnapshotMemory(Allocator& allocator, Options options)
    : allocator_(allocator), options_(std::move(options)) {
  TOKAMAK_CHECK(options_.elements >= 0 && options_.piece_elements > 0, options_.elements, " elements in pieces of ",
                options_.piece_elements);
}

SnapshotMemory::~SnapshotMemory() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  if (thread_.joinable()) thread_.join();
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const int64_t bytes = elements_of(static_cast<int64_t>(i)) * kElementBytes;
    allocator_.release(pieces_[i], bytes, MemoryKind::kPinned);
  }
}

int64_t SnapshotMemory::elements_of(int64_t piece) const {
  return std::min(options_.piece_elements, options_.elements - piece * options_.piece_elements);
}

void SnapshotMemory::start() {
  if (!thread_.joinable()) thread_ = std::thread([this] { take_pieces(); });
}

void SnapshotMemory::take_pieces() noexcept {
  int64_t taken = 0;  // bytes
  for (int64_t piece = 0; piece * options_.piece_elements < options_.elements; ++piece) {
    const int64_t bytes = elements_of(piece) * kElementBytes;
    std::byte* memory = nullptr;
    std::optional<Error> error;
    const auto failed = [&](Kind kind, const char* why) {
      error.emplace(
          kind,
          str("no host memory for the snapshot that checkpoints are written from: ",
              human_bytes(options_.elements * kElementBytes), " in all, ", human_bytes(taken), " taken; ", why),
          options_.hint);
    };
    try {
      memory = allocator_.allocate(bytes, MemoryKind::kPinned);
    } catch (const Error& reason) {
      failed(reason.kind(), reason.what());
    } catch (const std::exception& reason) {
      failed(Kind::kDevice, reason.what());
    }
    const std::lock_guard lock(mutex_);
    if (memory != nullptr) pieces_.push_back(memory);
    error_ = std::move(error);
    changed_.notify_all();
    if (ends_ || error_) return;
    taken += bytes;
  }
}

void SnapshotMemory::expect_no_error() {
  const std::lock_guard lock(mutex_);
  if (error_) throw Error(*error_);
}

Tensor SnapshotMemory::part(int64_t begin, int64_t end) {
  TOKAMAK_CHECK(0 <= begin && begin < end && end <= options_.elements, begin, " to ", end, " of ", options_.elements);
  start();
  const int64_t piece = begin / options_.piece_elements, first = piece * options_.piece_elements;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || std::ssize(pieces_) > piece; });
  if (std::ssize(pieces_) <= piece) throw Error(*error_);
  const Tensor whole(pieces_[static_cast<size_t>(piece)], DType::kF32, Shape{elements_of(piece)});
  return whole.flat(begin - first, std::min(end - first, whole.count()));
}

}  // namespace tokamak
