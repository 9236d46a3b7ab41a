#include "cuda/nccl/warm_up.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/process.h"
#include "base/service_thread.h"
#include "tensor/arena.h"

namespace tokamak {

namespace {

constexpr double kWarmUpSeconds = 300;                      // thousands of ranks connect in a minute or two
constexpr int64_t kLeastSlice = Comm::kSliceAlignment / 2;  // elements: aligned in bf16, too

double warm_up_seconds() {
  const char* const text = std::getenv("TOKAMAK_NCCL_SECONDS");
  if (text == nullptr) return kWarmUpSeconds;
  const double seconds = std::strtod(text, nullptr);
  if (seconds > 0) return seconds;
  fail(Kind::kConfig, str("the environment variable TOKAMAK_NCCL_SECONDS is '", text, "', it should be seconds"));
}

struct FirstCollective {
  std::string text;  // "reduce_scatter by reductions of ranks 0 to 7"
  std::function<void()> enqueue;
};

void run_or_name(const std::vector<FirstCollective>& collectives, Stream& stream) {
  std::atomic<const FirstCollective*> under_way = &collectives.front();
  const double seconds = warm_up_seconds();
  const ExitTimer timer(seconds, static_cast<int>(Kind::kComm), [&] {
    log::error(host_name(), ": NCCL's first ", under_way.load()->text, " has not ended within ", seconds,
               " s (TOKAMAK_NCCL_SECONDS)\n  hint: a rank or a link is missing; NCCL_DEBUG=INFO makes NCCL log more");
    log::flush();
  });
  for (const FirstCollective& collective : collectives) {
    under_way = &collective;
    try {
      collective.enqueue();
      stream.synchronize();
    } catch (const Error& error) {
      fail(error.kind(), str("NCCL's first ", collective.text, ": ", error.what()), error.hint());
    }
  }
}

}  // namespace

void warm_up(Comm& group, CudaDevice& device, const NcclWarmUp& options) {
  if (options.bytes == 0) return;
  const int64_t ranks = group.size();
  const int64_t elements = options.bytes / size_of(DType::kF32) / ranks / kLeastSlice * kLeastSlice;
  const int64_t longest = std::max(elements, kLeastSlice);
  const bool bf16 = options.reduce == Precision::kBF16;
  MemoryPlan plan;
  const auto full_slot = plan.add("warm-up/full", DType::kF32, Shape{longest * ranks}, MemoryKind::kExchanged);
  std::optional<MemoryPlan::Slot> scratch_slot;
  if (bf16) {
    const Shape shape{group.scratch_elements(longest, DType::kBF16)};
    scratch_slot = plan.add("warm-up/scratch", DType::kBF16, shape, MemoryKind::kExchanged);
  }
  const std::unique_ptr<Stream> stream = device.make_stream();
  const Arena arena(plan, device);
  group.register_memory();
  std::vector<FirstCollective> collectives;
  for (const int64_t slice : {kLeastSlice, longest}) {
    const Tensor full = arena[full_slot].flat(0, slice * ranks);
    const Tensor own = full.flat(slice * group.rank(), slice * (group.rank() + 1));
    collectives.push_back(
        {"all_gather by " + options.gathers, [&, full, own] { group.all_gather(*stream, own, full); }});
    collectives.push_back({"reduce_scatter by " + options.reductions,
                           [&, full, own] { group.reduce_scatter(*stream, {.full = full, .slice = own}); }});
    collectives.push_back({"all_reduce by " + options.reductions, [&, full] { group.all_reduce(*stream, full); }});
    if (!bf16) continue;
    const Tensor scratch = arena[*scratch_slot];
    collectives.push_back({"reduce_scatter in bf16 by " + options.bf16_reductions, [&, full, own, scratch] {
                             group.reduce_scatter(
                                 *stream, {.full = full, .slice = own, .dtype = DType::kBF16, .scratch = scratch});
                           }});
  }
  run_or_name(collectives, *stream);
}

}  // namespace tokamak
