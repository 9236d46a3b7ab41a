// A CudaDevice keeps the promises of src/backend/device.h: memory is zeroed, copies come in the order of the stream,
// and the host's buffer is free again at once.
#include "cuda/device.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
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

TEST_CASE("device memory comes zeroed, and what is copied to it comes back") {
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

TEST_CASE("more memory than there is is refused with the numbers, and the device goes on") {
  const Backend backend = make_backend();
  Device& device = *backend.device;
  CHECK(device.available_bytes() > 0);
  CHECK(device.available_bytes() <= device.total_bytes());
  CHECK_THROWS_WITH(device.allocate(device.total_bytes() * 2, MemoryKind::kDevice),
                    Catch::Contains("not enough GPU memory: asked for") && Catch::Contains("available"));
  std::byte* memory = device.allocate(4096, MemoryKind::kDevice);
  device.release(memory, 4096, MemoryKind::kDevice);
}
