// A CudaDevice keeps the promises of src/backend/device.h: memory is zeroed, copies run in the order of the stream,
// and the host's buffer is free again at once. Graphs and timestamps as CUDA documents them.
#include "cuda/device.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "base/log.h"
#include "cuda/check.h"
#include "tensor/arena.h"

using namespace tokamak;

namespace {

Backend make_backend() {
  log::configure(0, 1, log::Level::kWarning);
  RuntimeOptions options;
  options.backend = BackendKind::kCuda;
  return make_cuda_backend(options, 0);
}

}  // namespace

TEST_CASE("device memory is zeroed, and copied data reads back the same") {
  const Backend backend = make_backend();
  Device& device = *backend.device;
  CHECK_FALSE(device.uses_host_memory());
  MemoryPlan plan;
  const auto slot = plan.add("x", DType::kI32, Shape{1 << 20});
  const auto pinned = plan.add("back", DType::kI32, Shape{1 << 20}, MemoryKind::kPinned);
  const Arena arena(plan, device);
  const Tensor x = arena[slot], back = arena[pinned];
  const std::span<int32_t> read(back.as<int32_t>(), static_cast<size_t>(back.count()));
  const auto stream = device.make_stream();

  std::fill(read.begin(), read.end(), -1);
  device.copy_to_host(*stream, x, read.data());
  stream->synchronize();
  CHECK(std::all_of(read.begin(), read.end(), [](int32_t v) { return v == 0; }));

  // More than the upload ring holds in one piece, and the buffer is overwritten as soon as the call returns.
  std::vector<int32_t> values(read.size());
  std::iota(values.begin(), values.end(), 7);
  const std::vector<int32_t> expected = values;
  device.copy_to_device(*stream, values.data(), x);
  std::fill(values.begin(), values.end(), 0);
  device.copy_to_host(*stream, x, read.data());
  stream->synchronize();
  CHECK(std::equal(read.begin(), read.end(), expected.begin()));
}

TEST_CASE("many small uploads in a row arrive in their order") {
  const Backend backend = make_backend();
  Device& device = *backend.device;
  MemoryPlan plan;
  const auto slot = plan.add("x", DType::kI32, Shape{100, 3});
  const Arena arena(plan, device);
  const Tensor x = arena[slot];
  const auto stream = device.make_stream();
  for (int32_t i = 0; i < 100; ++i) {
    const int32_t row[3] = {i, i + 1, i + 2};
    device.copy_to_device(*stream, row, x.rows(i, i + 1));
  }
  std::vector<int32_t> back(300);
  device.copy_to_host(*stream, x, back.data());
  stream->synchronize();
  for (int32_t i = 0; i < 300; ++i) CHECK(back[static_cast<size_t>(i)] == i / 3 + i % 3);
}

TEST_CASE("a stream of high priority is scheduled before others") {
  const Backend backend = make_backend();
  const auto normal = backend.device->make_stream(),
             high = backend.device->make_stream({.priority = StreamPriority::kHigh});
  int lesser = 0, greater = 0;
  REQUIRE(cudaStreamGetPriority(handle(*normal), &lesser) == cudaSuccess);
  REQUIRE(cudaStreamGetPriority(handle(*high), &greater) == cudaSuccess);
  CHECK(greater < lesser);  // CUDA's greater priority is the smaller number
}

TEST_CASE("work on one stream waits for the event of another") {
  const Backend backend = make_backend();
  Device& device = *backend.device;
  MemoryPlan plan;
  const auto slot = plan.add("x", DType::kF32, Shape{1 << 22});
  const Arena arena(plan, device);
  const Tensor x = arena[slot];
  const auto first = device.make_stream(), second = device.make_stream();
  const auto written = device.make_event();
  backend.ops->fill(*first, {.x = x, .value = 3});
  first->record(*written);
  second->wait(*written);
  std::vector<float> back(static_cast<size_t>(x.count()));
  device.copy_to_host(*second, x, back.data());
  second->synchronize();
  CHECK(std::all_of(back.begin(), back.end(), [](float v) { return v == 3.0f; }));
}

TEST_CASE("an allocation beyond the memory is an error with the numbers, and the device stays usable") {
  const Backend backend = make_backend();
  Device& device = *backend.device;
  CHECK(device.available_bytes() > 0);
  CHECK(device.available_bytes() <= device.total_bytes());
  try {
    device.allocate(device.total_bytes() * 2, MemoryKind::kDevice);
    FAIL("it was given");
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kDevice);
    CHECK_THAT(error.what(), Catch::Contains("not enough GPU memory: asked for") && Catch::Contains("available"));
  }
  std::byte* memory = device.allocate(4096, MemoryKind::kDevice);
  device.release(memory, 4096, MemoryKind::kDevice);
}

namespace {

struct GraphTest {
  GraphTest() : backend(make_backend()), device(*backend.device), stream(device.make_stream()) {
    MemoryPlan plan;
    const auto x_slot = plan.add("x", DType::kF32, Shape{1 << 16}), y_slot = plan.add("y", DType::kF32, Shape{1 << 16}),
               z_slot = plan.add("z", DType::kF32, Shape{1 << 16});
    arena.emplace(plan, device);
    x = (*arena)[x_slot];
    y = (*arena)[y_slot];
    z = (*arena)[z_slot];
  }
  void fill(Stream& on, Tensor tensor, double value) { backend.ops->fill(on, {.x = tensor, .value = value}); }
  void add(Stream& on, Tensor to, Tensor from) {
    backend.ops->cast(on, {.src = from, .dst = to, .write = Write::kAccumulate});
  }
  // The value of all elements, which must be equal.
  float value_of(Tensor tensor) {
    std::vector<float> back(static_cast<size_t>(tensor.count()));
    device.copy_to_host(*stream, tensor, back.data());
    stream->synchronize();
    CHECK(std::all_of(back.begin(), back.end(), [&](float v) { return v == back[0]; }));
    return back[0];
  }

  Backend backend;
  Device& device;
  std::unique_ptr<Stream> stream;
  std::optional<Arena> arena;
  Tensor x, y, z;
};

}  // namespace

TEST_CASE("a graph does nothing when it is recorded, and its work as often as it is launched") {
  GraphTest t;
  REQUIRE(t.device.can_record());
  t.fill(*t.stream, t.x, 3);
  t.fill(*t.stream, t.y, 0);
  const auto graph = t.device.record(*t.stream, [&] {
    t.add(*t.stream, t.y, t.x);
    t.add(*t.stream, t.x, t.y);
  });
  CHECK(t.value_of(t.x) == 3);
  CHECK(t.value_of(t.y) == 0);
  graph->launch(*t.stream);
  graph->launch(*t.stream);  // y = 3, x = 6; y = 9, x = 15
  CHECK(t.value_of(t.y) == 9);
  CHECK(t.value_of(t.x) == 15);
  const auto other = t.device.make_stream();
  t.fill(*t.stream, t.x, 1);
  t.stream->synchronize();
  graph->launch(*other);
  other->synchronize();
  CHECK(t.value_of(t.y) == 10);
}

TEST_CASE("a graph has the work of streams that wait for its own and are waited for, in that order") {
  GraphTest t;
  const auto side = t.device.make_stream();
  const auto forked = t.device.make_event(), joined = t.device.make_event();
  const auto graph = t.device.record(*t.stream, [&] {
    t.fill(*t.stream, t.x, 5);
    t.fill(*t.stream, t.y, 0);
    t.stream->record(*forked);
    side->wait(*forked);
    t.fill(*t.stream, t.z, 2);  // beside the other stream's work
    t.add(*side, t.y, t.x);
    t.add(*side, t.y, t.x);
    side->record(*joined);
    t.stream->wait(*joined);
    t.fill(*t.stream, t.x, 5);
    t.add(*t.stream, t.x, t.z);
    t.add(*t.stream, t.y, t.x);
  });
  for (int again = 0; again < 2; ++again) {
    graph->launch(*t.stream);
    CHECK(t.value_of(t.y) == 17);
  }
}

TEST_CASE("work that a graph cannot capture is an error, and the stream stays usable") {
  GraphTest t;
  const auto side = t.device.make_stream();
  const auto event = t.device.make_event();
  t.fill(*side, t.x, 1);
  side->record(*event);  // outside of any graph
  const auto refused = [&](const std::function<void()>& work, const char* why) {
    CHECK_THROWS_WITH(t.device.record(*t.stream,
                                      [&] {
                                        t.fill(*t.stream, t.y, 9);
                                        work();
                                      }),
                      Catch::Contains(why));
    t.fill(*t.stream, t.y, 2);
    CHECK(t.value_of(t.y) == 2);
  };
  refused([&] { t.stream->synchronize(); }, "cudaErrorStreamCaptureUnsupported");
  refused([&] { t.device.allocate(4096, MemoryKind::kDevice); }, "cudaErrorStreamCaptureUnsupported");
  refused([&] { t.stream->wait(*event); }, "cudaErrorStreamCaptureIsolation");
  refused(
      [&] {
        t.stream->record(*event);
        event->synchronize();
      },
      "cudaErrorCapturedEvent");
  refused(
      [&] {
        t.stream->record(*event);
        side->wait(*event);
        t.fill(*side, t.x, 3);
      },
      "cudaErrorStreamCaptureUnjoined");
  refused([&] { throw Error(Kind::kDevice, "a reason of our own"); }, "a reason of our own");
}

TEST_CASE("the head goes in as few equal chunks as its share of the memory allows") {
  const Backend backend = make_backend();
  const auto rows = [&](int64_t tokens, int64_t vocab, DType act = DType::kBF16) {
    const HeadChunk chunk = backend.ops->head_chunk(tokens, vocab, act);
    CHECK(chunk.logits == act);
    return chunk.rows;
  };
  CHECK(rows(4096, 1000) == 4096);
  CHECK(rows(100, 1000) == 100);
  const int64_t vocab = backend.device->total_bytes() / 24 / 2 / 1000;  // 1000 rows fit: 896, in steps of 128
  CHECK(rows(896, vocab) == 896);
  CHECK(rows(1792, vocab) == 896);
  CHECK(rows(1800, vocab) == 640);  // three equal chunks, not two and a rest
  CHECK(rows(8192, 1000 * vocab) == 256);
  CHECK(rows(896, vocab, DType::kF32) == 384);  // half as many fit, 384 in steps of 128: three chunks
}

TEST_CASE("a device fault, insufficient memory and a refused capture are different errors") {
  const auto kind_of = [](cudaError_t status) {
    try {
      TOKAMAK_CUDA(status);
    } catch (const Error& error) {
      return error.kind();
    }
    FAIL("no error");
    return Kind::kBug;
  };
  CHECK(kind_of(cudaErrorIllegalAddress) == Kind::kDeviceFault);
  CHECK(kind_of(cudaErrorLaunchFailure) == Kind::kDeviceFault);
  CHECK(kind_of(cudaErrorInvalidValue) == Kind::kDeviceFault);
  CHECK(kind_of(cudaErrorMemoryAllocation) == Kind::kDevice);
  CHECK(kind_of(cudaErrorStreamCaptureUnsupported) == Kind::kUnsupported);
  CHECK(kind_of(cudaErrorStreamCaptureInvalidated) == Kind::kUnsupported);
  CHECK(kind_of(cudaErrorCapturedEvent) == Kind::kUnsupported);
  CHECK(kind_of(cudaErrorNoDevice) == Kind::kDevice);
  CHECK(kind_of(cudaErrorInsufficientDriver) == Kind::kDevice);
}

TEST_CASE("the time between two timestamps is known when the work is over") {
  GraphTest t;
  const auto begin = t.device.make_timestamp(), end = t.device.make_timestamp();
  begin->record(*t.stream);
  for (int i = 0; i < 20; ++i) t.fill(*t.stream, t.x, i);
  end->record(*t.stream);
  t.stream->synchronize();
  REQUIRE(end->seconds_since(*begin));
  CHECK(*end->seconds_since(*begin) > 0);
}
