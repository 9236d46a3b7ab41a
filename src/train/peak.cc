#include "train/peak.h"

#include <algorithm>

#include "base/clock.h"

namespace tokamak {

double measure_gemm_rate(Backend& backend, DType compute) {
  constexpr int64_t kSize = 1024;
  constexpr int kRepetitions = 8;
  MemoryPlan plan;
  const auto a = plan.add("a", compute, Shape{kSize, kSize});
  const auto b = plan.add("b", compute, Shape{kSize, kSize});
  const auto c = plan.add("c", compute, Shape{kSize, kSize});
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

}  // namespace tokamak
