// The CPU as a device, the choice of a backend, and threads per rank.
#include "backend/cpu/device.h"

#include <future>

#include "backend/observer.h"
#include "support.h"
#include "tensor/arena.h"

using namespace tokamak;
using namespace tokamak::testing;

TEST_CASE("the CPU gives zeroed, aligned memory, large and small") {
  CpuDevice device;
  for (const int64_t bytes : {int64_t{1}, int64_t{1000}, (int64_t{2} << 20) - 1, (int64_t{5} << 20) + 3}) {
    for (int repeat = 0; repeat < 2; ++repeat) {  // the second may get the first one's memory, not zero
      std::byte* memory = device.allocate(bytes, MemoryKind::kDevice);
      CHECK(reinterpret_cast<uintptr_t>(memory) % 256 == 0);
      CHECK(std::all_of(memory, memory + bytes, [](std::byte b) { return b == std::byte{0}; }));
      std::fill(memory, memory + bytes, std::byte{0xFF});
      device.release(memory, bytes, MemoryKind::kDevice);
    }
  }
}

TEST_CASE("memory that the machine does not have is an error that names both numbers") {
  CpuDevice device;
  try {
    device.allocate(int64_t{1} << 60, MemoryKind::kDevice);
    FAIL("allocated");
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kDevice);
    CHECK_THAT(error.what(), Catch::Contains(human_bytes(0x1p60)) && Catch::Contains("available"));
    CHECK_THAT(error.hint(), Catch::Contains("micro_batch_size"));
  }
}

TEST_CASE("copies to the device and back keep every byte") {
  CpuDevice device;
  const auto stream = device.make_stream();
  const std::string from = random_tensor(DType::kF32, {1 << 20}, "copied").bytes();
  const HostTensor on_device(DType::kF32, {1 << 20});
  std::string to(from.size(), '\0');
  device.copy_to_device(*stream, from.data(), on_device);
  device.copy_to_host(*stream, on_device, to.data());
  CHECK((to == from));
}

namespace {

// Streams of a device: one that runs its work at once, and two with threads of their own, the first of which is held up
// until go_on().
struct HeldUp {
  HeldUp() {
    first->run_on_host([held = std::shared_future<void>(hold.get_future())] { held.wait(); });
  }
  void go_on() { hold.set_value(); }

  std::promise<void> hold;
  CpuDevice device;
  std::unique_ptr<Stream> compute = device.make_stream({.name = "compute"});
  std::unique_ptr<Stream> first = device.make_stream({.name = "first", .priority = StreamPriority::kHigh});
  std::unique_ptr<Stream> second = device.make_stream({.name = "second", .priority = StreamPriority::kHigh});
  std::unique_ptr<Event> event = device.make_event(), later = device.make_event();
};

struct HostWaits : Observer {
  explicit HostWaits(HeldUp& streams) : held(streams) {}
  void begin(Stream&, const Call&) override {}
  void end(Stream&, const Call&) override {}
  void host_waits(Stream&) override {
    ++begun;
    held.go_on();
  }
  void host_waited(Stream&) override { ++ended; }
  HeldUp& held;
  int begun = 0, ended = 0;
};

}  // namespace

TEST_CASE("streams of high priority run beside the caller, each in its order, and events order them") {
  HeldUp s;
  std::vector<int> order;
  s.first->run_on_host([&] { order.push_back(1); });
  s.first->record(*s.event);
  s.second->wait(*s.event);
  s.second->run_on_host([&] { order.push_back(2); });
  s.second->record(*s.later);
  CHECK(order.empty());  // the caller did not wait for the streams
  s.go_on();
  s.compute->wait(*s.later);
  CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("a wait means the event's last record before it, and one that was never recorded is no wait") {
  HeldUp s;
  const auto never = s.device.make_event();
  s.compute->wait(*never);
  s.second->record(*s.event);
  s.first->record(*s.later);
  s.second->wait(*s.event);  // waits for its own record, not for the first's
  s.compute->wait(*s.event);
  s.compute->record(*s.event);  // reached at once: `compute` runs its work in the caller
  s.second->wait(*s.event);
  bool passed = false;
  s.second->run_on_host([&] { passed = true; });
  s.second->synchronize();
  CHECK(passed);  // while the first stream is held up
  s.go_on();
  s.later->synchronize();
}

TEST_CASE("operations keep a stream's order, wherever it runs") {
  HeldUp s;
  std::vector<float> x(100, 0);
  make_cpu_backend().ops->fill(*s.compute, {.x = Tensor(x.data(), DType::kF32, {100}), .value = 1});
  const Backend cpu = make_cpu_backend();
  cpu.ops->fill(*s.first, {.x = Tensor(x.data(), DType::kF32, {100}), .value = 3});
  CHECK(x[99] == 1);  // the first stream is held up
  s.go_on();
  s.first->synchronize();
  CHECK(x[99] == 3);
}

TEST_CASE("what a stream's work throws ends it, and reaches who waits, through other streams too") {
  HeldUp s;
  bool ran = false;
  s.first->run_on_host([] { fail(Kind::kComm, "the cable is cut"); });
  s.first->run_on_host([&] { ran = true; });
  s.first->record(*s.event);
  s.second->wait(*s.event);
  s.second->record(*s.later);
  s.go_on();
  CHECK_THROWS_WITH(s.compute->wait(*s.event), "the cable is cut");
  CHECK_THROWS_WITH(s.compute->wait(*s.later), "the cable is cut");
  CHECK_FALSE(ran);
}

TEST_CASE("the host's own waits for other streams are shown, and only where there is something to wait for") {
  HeldUp s;
  HostWaits waits(s);
  const Observation watched(s.device, waits);
  s.second->record(*s.event);
  s.second->synchronize();
  s.compute->wait(*s.event);
  s.first->record(*s.later);
  s.second->wait(*s.later);
  CHECK(waits.begun == 0);
  s.compute->wait(*s.later);
  CHECK(waits.begun == 1);
  CHECK(waits.ended == 1);
}

TEST_CASE("a time is known when the stream has reached it, and memory stays until the streams have finished") {
  HeldUp s;
  const auto before = s.device.make_timestamp(), after = s.device.make_timestamp();
  before->record(*s.compute);
  after->record(*s.first);
  CHECK_FALSE(after->seconds_since(*before).has_value());
  std::byte* const memory = s.device.allocate(1 << 22, MemoryKind::kDevice);
  bool written = false;
  s.first->run_on_host([&] {
    std::fill(memory, memory + (1 << 22), std::byte{1});
    written = true;
  });
  s.go_on();
  s.device.release(memory, 1 << 22, MemoryKind::kDevice);
  CHECK(written);
  CHECK(after->seconds_since(*before).value() >= 0);
}

TEST_CASE("the device describes itself") {
  const ThreadCount threads(3);
  CHECK_THAT(CpuDevice().description(), Catch::StartsWith("CPU, ") && Catch::Contains("3 threads"));
}

TEST_CASE("a rank uses its launcher's cores, its share of the node, or the configured number of threads") {
  RuntimeOptions automatic, told;
  told.threads_per_rank.value = 5;
  struct Row {
    int cores, ranks_on_cores, expected;
  };
  for (const Row& row : {Row{64, 1, 64}, Row{64, 4, 16}, Row{8, 1, 8}, Row{1, 1, 1}, Row{2, 8, 1}, Row{64, 3, 21}}) {
    INFO(row.cores << " cores, " << row.ranks_on_cores << " ranks on them");
    CHECK(threads_of_rank(automatic, row.cores, row.ranks_on_cores) == row.expected);
    CHECK(threads_of_rank(told, row.cores, row.ranks_on_cores) == 5);
  }
}

TEST_CASE("the configured backend is created, with its threads") {
  const ThreadCount before(1);
  RuntimeOptions options;
  options.backend = BackendKind::kCpu;
  options.threads_per_rank.value = 3;
  const Backend backend = make_backend(options, 0, 1);
  CHECK(thread_count() == 3);
  CHECK_THAT(backend.device->description(), Catch::StartsWith("CPU"));
}

TEST_CASE("a missing CUDA backend is an error if configured, and ignored otherwise") {
  const ThreadCount before(1);
  RuntimeOptions options;
  if (cuda_presence().devices == 0) {
    CHECK_THAT(make_backend(options, 0, 1).device->description(), Catch::StartsWith("CPU"));
    options.backend = BackendKind::kCuda;
    CHECK_THROWS_AS(make_backend(options, 0, 1), Error);
  } else {
    WARN("skipped: there is a GPU");
  }
}
