#include "train/peak.h"

#include <algorithm>

#include "base/clock.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr int64_t kSize = 1024;
constexpr int kRepetitions = 8;

struct GemmPlan {
  explicit GemmPlan(DType compute) {
    a = plan.add("a", compute, Shape{kSize, kSize});
    b = plan.add("b", compute, Shape{kSize, kSize});
    c = plan.add("c", compute, Shape{kSize, kSize});
  }
  MemoryPlan plan;
  MemoryPlan::Slot a, b, c;
};

double measure_gemm_rate(Backend& backend, DType compute) {
  const auto [plan, a, b, c] = GemmPlan(compute);
  const Arena arena(plan, *backend.device);
  const auto stream = backend.device->make_stream();
  backend.ops->fill(*stream, {.x = arena[a], .value = 0.5});
  backend.ops->fill(*stream, {.x = arena[b], .value = 0.5});
  double best = 0;
  for (int i = 0; i < kRepetitions; ++i) {
    const Stopwatch watch;
    backend.ops->gemm(*stream, {.a = arena[a], .b = arena[b], .c = arena[c], .trans_b = Transpose::kYes});
    stream->synchronize();
    best = std::max(best, 2.0 * kSize * kSize * kSize / watch.seconds());
  }
  return best;
}

}  // namespace

Peak peak_of(Backend& backend, DType compute) {
  const double stated = backend.device->peak_flops(compute);
  if (stated > 0) return {stated, "its vendor's dense peak"};
  return {measure_gemm_rate(backend, compute), str("a ", kSize, "^3 GEMM, measured now")};
}

int64_t peak_measurement_bytes(const Device& device, DType compute) {
  return device.peak_flops(compute) > 0 ? 0 : GemmPlan(compute).plan.total_bytes();
}

}  // namespace tokamak
