// The CPU as a device, the choice of a backend, and threads per rank.
#include "backend/cpu/device.h"

#include "support.h"
#include "tensor/arena.h"

using namespace tokamak;
using namespace tokamak::testing;

TEST_CASE("the CPU gives zeroed, aligned memory, large and small") {
  CpuDevice device;
  for (const int64_t bytes : {int64_t{1}, int64_t{1000}, (int64_t{2} << 20) - 1, (int64_t{5} << 20) + 3}) {
    for (int repeat = 0; repeat < 2; ++repeat) {  // the second is the first one's memory, perhaps, full of rubbish
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
