// A snapshot's memory: a thread allocates pieces, and callers wait for them. The thread sanitizer runs it, too.
#include "checkpoint/snapshot_memory.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <future>
#include <numeric>
#include <span>
#include <thread>

#include "base/error.h"

using namespace tokamak;
using Catch::Contains;

namespace {

// Allocates as many pieces as `allowed` says, or refuses all from a given one on.
class Gated : public Allocator {
 public:
  std::byte* allocate(int64_t bytes, MemoryKind kind) override {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [&] { return std::ssize(sizes_) < allowed_; });
    if (std::ssize(sizes_) == refused_) fail(Kind::kDevice, str("refused ", human_bytes(bytes)), "another hint");
    TOKAMAK_CHECK(kind == MemoryKind::kPinned, "a snapshot is pinned");
    sizes_.push_back(bytes);
    live_ += bytes;
    return static_cast<std::byte*>(std::malloc(static_cast<size_t>(bytes)));
  }
  void release(std::byte* memory, int64_t bytes, MemoryKind) noexcept override {
    const std::lock_guard lock(mutex_);
    live_ -= bytes;
    std::free(memory);
  }
  void allow(int64_t pieces) {
    const std::lock_guard lock(mutex_);
    allowed_ = pieces;
    opened_.notify_all();
  }
  void refuse(int64_t piece) { refused_ = piece; }
  std::vector<int64_t> sizes() const {
    const std::lock_guard lock(mutex_);
    return sizes_;
  }
  int64_t live() const {
    const std::lock_guard lock(mutex_);
    return live_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable opened_;
  std::vector<int64_t> sizes_;
  int64_t allowed_ = INT64_MAX, refused_ = -1, live_ = 0;
};

// Lets the thread end if its case fails.
class OpenedAtEnd {
 public:
  explicit OpenedAtEnd(Gated& allocator) : allocator_(allocator) {}
  ~OpenedAtEnd() { allocator_.allow(INT64_MAX); }

 private:
  Gated& allocator_;
};

SnapshotMemory::Options in_pieces(int64_t elements) {
  return {.bytes = 4 * elements, .piece_bytes = 400, .hint = "what would help"};
}

// Returns elements [begin, end), as far as they are in the piece of `begin`.
std::span<float> part_of(SnapshotMemory& memory, int64_t begin, int64_t end) {
  const std::span<std::byte> bytes = memory.part(4 * begin, 4 * end);
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / 4};
}

}  // namespace

TEST_CASE("a snapshot takes nothing before it is started, then pieces of the size allowed, and gives all back") {
  Gated allocator;
  {
    SnapshotMemory unused(allocator, in_pieces(250));
    unused.expect_no_error();
  }
  CHECK(allocator.sizes().empty());
  {
    SnapshotMemory memory(allocator, in_pieces(250));
    memory.start();
    memory.start();
    part_of(memory, 249, 250);
    CHECK(allocator.sizes() == std::vector<int64_t>{400, 400, 200});
    CHECK(allocator.live() == 1000);
  }
  CHECK(allocator.live() == 0);
  {
    SnapshotMemory started(allocator, in_pieces(100000));
    started.start();
  }
  CHECK(allocator.live() == 0);
}

TEST_CASE("parts cover any range, each in one piece, and hold what was written to them") {
  Gated allocator;
  SnapshotMemory memory(allocator, in_pieces(250));
  const auto parts = [&](int64_t begin, int64_t end) {
    std::vector<std::span<float>> all;
    for (int64_t at = begin; at < end; at += std::ssize(all.back())) all.push_back(part_of(memory, at, end));
    return all;
  };
  float value = 0;
  for (const std::span<float> part : parts(0, 250)) {
    std::iota(part.begin(), part.end(), value);
    value += static_cast<float>(part.size());
  }
  for (const auto& [begin, end] : {std::pair{0, 250}, {0, 100}, {99, 101}, {100, 200}, {30, 40}, {150, 250}}) {
    std::vector<float> seen;
    for (const std::span<float> part : parts(begin, end)) seen.insert(seen.end(), part.begin(), part.end());
    std::vector<float> expected(static_cast<size_t>(end - begin));
    std::iota(expected.begin(), expected.end(), static_cast<float>(begin));
    CHECK(seen == expected);
  }
  CHECK(parts(99, 101).size() == 2);
  CHECK_THROWS_WITH(memory.part(0, 1001), Contains("0 to 1001 of 1000"));
}

TEST_CASE("a part waits for its own piece, and for no later one") {
  Gated allocator;
  allocator.allow(1);
  SnapshotMemory memory(allocator, in_pieces(250));
  const OpenedAtEnd opened(allocator);
  CHECK(part_of(memory, 20, 250).size() == 80);  // although the second piece is not allocated
  memory.expect_no_error();
  std::promise<void> asks;
  std::future<int64_t> second = std::async(std::launch::async, [&] {
    asks.set_value();
    part_of(memory, 150, 250);
    return std::ssize(allocator.sizes());
  });
  asks.get_future().wait();
  allocator.allow(2);
  CHECK(second.get() == 2);
}

TEST_CASE("the thread rests after a piece, until a part beyond it is asked for or the memory ends") {
  Gated allocator;
  {
    SnapshotMemory::Options options = in_pieces(250);
    options.rest = int64_t{1} << 30;
    SnapshotMemory memory(allocator, options);
    part_of(memory, 0, 100);
    part_of(memory, 100, 200);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // a thread that does not rest would go on
    CHECK(allocator.sizes() == std::vector<int64_t>{400, 400});
  }
  CHECK(allocator.live() == 0);
}

TEST_CASE("memory that is refused is an error with the bytes and what would help, for whoever asks from then on") {
  Gated allocator;
  allocator.refuse(1);
  SnapshotMemory memory(allocator, in_pieces(250));
  const auto error_of = [](const auto& ask) {
    try {
      ask();
    } catch (const Error& error) {
      return error;
    }
    return Error(Kind::kBug, "no error");
  };
  CHECK(part_of(memory, 0, 250).size() == 100);  // the first piece, which is allocated
  for (const Error& error :
       {error_of([&] { part_of(memory, 100, 250); }), error_of([&] { part_of(memory, 249, 250); }),
        error_of([&] { memory.expect_no_error(); }), error_of([&] { memory.expect_no_error(); })}) {
    CHECK(error.kind() == Kind::kDevice);
    CHECK_THAT(error.what(), Contains("1000 B in all, 400 B taken; refused 400 B"));
    CHECK(error.hint() == "what would help");
  }
}
