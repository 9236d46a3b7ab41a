#include "train/peak.h"

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "base/strings.h"
#include "engine/engine.h"
#include "monitor/jsonl.h"
#include "monitor/run_peak.h"

namespace tokamak {

namespace {

constexpr int64_t kSize = 1024, kSmallSize = 64;
constexpr int64_t kCopied = int64_t{1} << 23;  // elements, f32: no cache holds them
constexpr int kRepetitions = 8;

struct GemmPlan {
  explicit GemmPlan(DType compute, int64_t size = kSize) {
    a = plan.add("a", compute, Shape{size, size});
    b = plan.add("b", compute, Shape{size, size});
    c = plan.add("c", compute, Shape{size, size});
  }
  MemoryPlan plan;
  MemoryPlan::Slot a, b, c;
};

struct CopyPlan {
  CopyPlan() {
    src = plan.add("src", DType::kF32, Shape{kCopied});
    dst = plan.add("dst", DType::kF32, Shape{kCopied});
  }
  MemoryPlan plan;
  MemoryPlan::Slot src, dst;
};

// Of the fastest repetition, in seconds.
template <class Work>
double seconds_of(Stream& stream, const Work& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kRepetitions; ++i) {
    const Stopwatch watch;
    work();
    stream.synchronize();
    best = std::min(best, watch.seconds());
  }
  return best;
}

double measure_gemm_rate(Backend& backend, DType compute, int64_t size = kSize) {
  const auto [plan, a, b, c] = GemmPlan(compute, size);
  const Arena arena(plan, *backend.device);
  const auto stream = backend.device->make_stream();
  backend.ops->fill(*stream, {.x = arena[a], .value = 0.5});
  backend.ops->fill(*stream, {.x = arena[b], .value = 0.5});
  const Gemm gemm{.a = arena[a], .b = arena[b], .c = arena[c], .trans_b = Transpose::kYes};
  return 2.0 * static_cast<double>(size * size * size) / seconds_of(*stream, [&] { backend.ops->gemm(*stream, gemm); });
}

double measure_copy_rate(Backend& backend) {
  const CopyPlan memory;
  const Arena arena(memory.plan, *backend.device);
  const auto stream = backend.device->make_stream();
  backend.ops->fill(*stream, {.x = arena[memory.src], .value = 0.5});
  const Cast copy{.src = arena[memory.src], .dst = arena[memory.dst]};
  return 2.0 * kCopied * size_of(DType::kF32) / seconds_of(*stream, [&] { backend.ops->cast(*stream, copy); });
}

}  // namespace

PeakOptions peak_options(const RunConfig& config) {
  const bool traced = !config.metrics.trace.empty();  // whose operations have rooflines
  return {.compute = compute_dtype(config.precision), .measured = traced, .memory = traced};
}

bool reports_mfu(const RunConfig& config, const Device& device) {
  return device.peak_flops(compute_dtype(config.precision)) > 0;
}

Peak peak_of(Backend& backend, const PeakOptions& options) {
  const Device& device = *backend.device;
  const double stated = device.peak_flops(options.compute);
  Peak peak;
  if (stated > 0) {
    peak = {stated, "its vendor's dense peak"};
  } else if (options.measured) {
    peak = {measure_gemm_rate(backend, options.compute),
            str("a ", kSize, "^3 GEMM in ", name_of(options.compute), ", measured now")};
  } else if (device.uses_host_memory()) {
    measure_gemm_rate(backend, options.compute, kSmallSize);  // loads the library, so that it counts as the program's
  }
  if (options.memory && device.uses_host_memory()) peak.memory_rate = measure_copy_rate(backend);
  return peak;
}

Peak best_peak(const std::string& metrics_path, const Peak& measured, const Device& device, int ranks) {
  RunPeak all;
  const auto see = [&](const MetricRecord& record) { all.see(record); };
  read_events(metrics_path, {"start", "ready"}, see);
  see({.event = RunEvent{"start", "", {}}, .values = {count_value("ranks", ranks)}});
  see({.event = RunEvent{"ready", "", {{"device", device.description()}, {"peak", measured.source}}},
       .values = {{"peak/flops", measured.flops}, {"peak/memory_rate", measured.memory_rate}}});
  return {all.best().flops, measured.source, all.best().memory};
}

int64_t peak_measurement_bytes(const Device& device, const PeakOptions& options) {
  const bool stated = device.peak_flops(options.compute) > 0;
  const int64_t gemm = stated || !options.measured ? 0 : GemmPlan(options.compute).plan.total_bytes();
  const int64_t copy = options.memory && device.uses_host_memory() ? CopyPlan().plan.total_bytes() : 0;
  return std::max(gemm, copy);  // one after the other
}

}  // namespace tokamak
