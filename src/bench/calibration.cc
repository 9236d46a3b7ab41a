#include "bench/calibration.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/median.h"
#include "bench/op_benchmark.h"
#include "bench/replay.h"

namespace tokamak {

namespace {

// Elements of a rank's slice of a norm weight, of a small layer and of a large one.
constexpr int64_t kSlices[] = {int64_t{1} << 12, int64_t{1} << 17, int64_t{1} << 21};
constexpr int64_t kWarmups = 2;
constexpr int64_t kLeastRounds = 7;  // other processes disturb a collective more than an operation
constexpr int64_t kBeyondCaches = int64_t{128} << 20;
constexpr int64_t kBeside = 4;  // gathers, and as many reductions, that run while operations are timed

class Exchanges {
 public:
  Exchanges(Backend& backend, Comm& comm, const CalibrationOptions& options)
      : backend_(backend),
        comm_(comm),
        options_(options),
        stream_(backend.device->make_stream({.name = "calibration"})),
        beside_(backend.device->make_stream({.name = "beside", .priority = StreamPriority::kHigh})) {
    MemoryPlan plan;
    const int64_t largest = *std::max_element(std::begin(kSlices), std::end(kSlices));
    const auto slice = plan.add("slice", DType::kF32, Shape{largest}, MemoryKind::kExchanged);
    const auto full = plan.add("full", DType::kF32, Shape{largest * comm.size()}, MemoryKind::kExchanged);
    const auto numbers = plan.add("numbers", DType::kF64, Shape{kStepSums});
    const int64_t scratch = comm.scratch_elements(largest, options.reduce_dtype);
    const auto work =
        plan.add("scratch", options.reduce_dtype, Shape{std::max<int64_t>(scratch, 1)}, MemoryKind::kExchanged);
    arena_ = std::make_unique<Arena>(plan, *backend.device);
    slice_ = (*arena_)[slice];
    full_ = (*arena_)[full];
    numbers_ = (*arena_)[numbers];
    scratch_ = (*arena_)[work];
    comm.register_memory();
  }

  std::vector<MeasuredOp> measure() {
    std::vector<MeasuredOp> found;
    std::vector<std::function<void()>> calls;
    const auto add = [&](const char* name, double bytes, std::function<void()> call) {
      found.push_back({.name = name, .bytes = bytes});
      calls.push_back(std::move(call));
    };
    for (const int64_t count : kSlices) {
      const Tensor slice = slice_.flat(0, count), full = full_.flat(0, count * comm_.size());
      const auto bytes = double((comm_.size() - 1) * count * size_of(DType::kF32));
      add("all_gather", bytes, [=, this] { comm_.all_gather(*stream_, slice, full); });
      const double reduced = bytes * double(size_of(options_.reduce_dtype)) / size_of(DType::kF32);
      add("reduce_scatter", reduced, [=, this] {
        comm_.reduce_scatter(*stream_,
                             {.full = full, .slice = slice, .dtype = options_.reduce_dtype, .scratch = scratch_});
      });
    }
    const double bytes = double((comm_.size() - 1) * numbers_.bytes());
    add("all_reduce", bytes, [this] { comm_.all_reduce(*stream_, numbers_); });
    const auto seconds_of = [&](size_t i) {
      comm_.barrier();
      const Stopwatch watch;
      calls[i]();
      stream_->synchronize();
      return watch.seconds();
    };
    medians_in_turn(kWarmups, calls.size(), seconds_of);
    const auto medians = medians_in_turn(std::max(options_.rounds, kLeastRounds), calls.size(), seconds_of);
    for (size_t i = 0; i < calls.size(); ++i) found[i].seconds = medians[i];
    return found;
  }

  // Measures how collectives and operations of the step slow each other (Efficiency::contention, beside). On a CPU the
  // collectives' sums and messages take cores.
  void measure_contention(const RecordedGemm& gemm, Efficiency& efficiency) {
    Replay operation(backend_, calls_of({gemm}), {});
    operation.prepare(gemm.call);
    std::vector<double> shares, rates;
    for (int64_t round = -1; round < options_.rounds; ++round) {
      const double seconds_alone = collectives([](const IsOver& ended) {
        while (!ended()) std::this_thread::sleep_for(std::chrono::microseconds(100));
      });
      double rate_beside = 0;
      const double seconds_beside = collectives([&](const IsOver& ended) { rate_beside = rate(operation, ended); });
      comm_.barrier();
      const Stopwatch watch;
      const double rate_alone = rate(operation, [&] { return watch.seconds() >= seconds_beside; });
      if (round < 0) continue;
      shares.push_back(std::clamp(1 - rate_beside / rate_alone, 0.0, 0.9));
      rates.push_back(std::clamp(seconds_alone / seconds_beside, 0.1, 1.0));
    }
    efficiency.contention = median_of(std::move(shares));
    efficiency.beside = median_of(std::move(rates));
  }

 private:
  using IsOver = std::function<bool()>;

  // Returns calls per second of an operation that is repeated until `is_over`.
  static double rate(Replay& operation, const IsOver& is_over) {
    const Stopwatch watch;
    int64_t calls = 0;
    for (; !is_over(); ++calls) operation.seconds(0);
    return double(calls) / watch.seconds();
  }

  // Returns seconds of kBeside gathers and as many reductions; meanwhile this thread runs `meanwhile` until they have
  // ended.
  double collectives(const std::function<void(const IsOver& ended)>& meanwhile) {
    comm_.barrier();
    const auto begun = backend_.device->make_timestamp(), ended = backend_.device->make_timestamp();
    begun->record(*beside_);
    for (int64_t i = 0; i < kBeside; ++i) {
      comm_.all_gather(*beside_, slice_, full_);
      comm_.reduce_scatter(*beside_,
                           {.full = full_, .slice = slice_, .dtype = options_.reduce_dtype, .scratch = scratch_});
    }
    ended->record(*beside_);
    std::optional<double> seconds;
    meanwhile([&] { return (seconds = ended->seconds_since(*begun)).has_value(); });
    return *seconds;
  }

  Backend& backend_;
  Comm& comm_;
  CalibrationOptions options_;
  std::unique_ptr<Stream> stream_, beside_;
  std::unique_ptr<Arena> arena_;
  Tensor slice_, full_, numbers_, scratch_;
};

}  // namespace

OpTimes measure_operations(Machine& machine, Backend& backend, DryRun& dry, int64_t rounds) {
  OpTimes times = benchmark_ops(
      backend, dry, {.rounds = rounds, .spread_bytes = backend.device->uses_host_memory() ? kBeyondCaches : 0});
  const StepRecord record = dry.record();
  const std::vector<RecordedGemm> gemms = gemms_of(record, dry.ops());
  for (const OpTime& op : times.ops) {
    MeasuredOp measured{.name = op.name, .flops = op.flops, .bytes = op.bytes, .seconds = op.seconds};
    for (const RecordedGemm& gemm : gemms) {
      if ("gemm " + gemm.name != op.name) continue;
      measured.m = double(gemm.m());
      measured.n = double(gemm.n());
      measured.k = double(gemm.k());
    }
    machine.measured.push_back(measured);
  }
  return times;
}

Machine calibrate(Backend& backend, Comm& comm, DryRun& dry, const CalibrationOptions& options) {
  Machine operations;
  const OpTimes times = measure_operations(operations, backend, dry, options.rounds);
  const bool host = backend.device->uses_host_memory();
  Machine machine{
      .name = backend.device->description(),
      .bf16_flops = times.gemm_rate,
      .f32_flops = times.gemm_rate,
      .memory_bytes = backend.device->total_bytes(),
      .memory_rate = times.copy_rate,
      .link_rate = times.copy_rate,
      .network_rate = times.copy_rate,
      .gpus_per_node = options.ranks_per_node,
      .watts = 0,
      .launch_seconds = 0,
      .hop_seconds = 0,
      .efficiency = {.gemm = 1, .attention = 1, .native_attention = 1, .memory = 1, .bus = 1, .contention = 0},
      .cpu = host,
      .measured = std::move(operations.measured),
      .source = "measured by tokamak bench calibrate"};
  if (comm.size() > 1) {
    Exchanges exchange(backend, comm, options);
    const std::vector<MeasuredOp> exchanges = exchange.measure();
    if (host) exchange.measure_contention(gemms_of(dry.record(), dry.ops()).back(), machine.efficiency);
    machine.measured.insert(machine.measured.end(), exchanges.begin(), exchanges.end());
    // The rate of the largest messages: predictions use it for sizes that were not measured.
    const MeasuredOp& largest = exchanges[exchanges.size() - 3];
    machine.link_rate = machine.network_rate = largest.bytes / largest.seconds;
  }
  return machine;
}

}  // namespace tokamak
