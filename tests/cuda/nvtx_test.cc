// Ranges as a profiler sees them: NVTX's own mechanism loads nvtx_notes.cc. Needs no GPU: what is watched is the CPU.
#include "cuda/nvtx.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "backend/backend.h"
#include "base/file.h"

using namespace tokamak;

TEST_CASE("a profiler that listens sees a range for each call") {
  const auto ranges = make_nvtx_ranges();
  REQUIRE(ranges);
  Backend cpu = make_cpu_backend();
  const auto stream = cpu.device->make_stream();
  float values[6] = {};
  const Tensor a(values, DType::kF32, {2, 1}), b(values + 2, DType::kF32, {1, 1}), c(values + 4, DType::kF32, {2, 1});
  {
    const Observation watched(*cpu.device, *ranges);
    CHECK_FALSE(cpu.device->shows_operations());  // graphs are still replayed
    cpu.ops->gemm(*stream, {.a = a, .b = b, .c = c, .label = "qkv forward"});
    cpu.ops->fill(*stream, {.x = c, .value = 1});
  }
  cpu.ops->fill(*stream, {.x = c, .value = 1});
  CHECK(read_text(std::getenv("TOKAMAK_NVTX_NOTES"), Kind::kBug) == "gemm qkv forward\nend\nfill\nend\n");
}
