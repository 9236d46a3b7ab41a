#include "bench/op_benchmark.h"

#include <algorithm>

#include "bench/replay.h"
#include "train/random_batch.h"

namespace tokamak {

namespace {

constexpr double kSecondsPerRound = 0.1;

struct Timed {
  std::string name;
  OperationValue call;
  double flops = 0;
  double bytes = 0;
};

// The operations of the step, each name once, and its GEMMs.
std::vector<Timed> operations_of(const StepRecord& record, const Ops& ops) {
  std::vector<Timed> all;
  for (const StepRecord::Distinct& call : record.calls) {
    if (call.kind != CallKind::kOperation || std::holds_alternative<Gemm>(call.arguments)) continue;
    const Timed own{call.title, call.arguments, call.flops, call.bytes};
    const auto known = std::find_if(all.begin(), all.end(), [&](const Timed& timed) { return timed.name == own.name; });
    if (known == all.end()) {
      all.push_back(own);
    } else if (own.bytes > known->bytes) {
      *known = own;
    }
  }
  for (const RecordedGemm& gemm : gemms_of(record, ops)) all.push_back({"gemm " + gemm.name, gemm.call, gemm.flops()});
  return all;
}

// The reference copy and GEMM are not recorded, so their addresses only have to differ.
Cast copy_on(const Device& device) {
  const int64_t count = device.uses_host_memory() ? int64_t{1} << 23 : int64_t{1} << 27;
  static char addresses[2];
  return {.src = Tensor(&addresses[0], DType::kF32, {count}), .dst = Tensor(&addresses[1], DType::kF32, {count})};
}

Gemm square_gemm_on(const Device& device, DType compute) {
  const int64_t n = device.uses_host_memory() ? 1024 : 8192;
  static char addresses[3];
  const auto square = [&](int i) { return Tensor(&addresses[i], compute, {n, n}); };
  return {.a = square(0), .b = square(1), .c = square(2), .trans_b = Transpose::kYes};
}

}  // namespace

OpTimes benchmark_ops(Backend& backend, DryRun& run, const OpBenchmarkOptions& options) {
  const Transformer& model = run.model();
  const BatchShape& shape = run.shape();
  const int64_t vocab = model.config().vocab_size;
  std::vector<Timed> operations = operations_of(run.record(shape, options.mean_document), *backend.ops);
  const std::vector<int32_t> documents =
      RandomBatch(shape, {.vocab = vocab, .mean_document = options.mean_document}).most_documents();
  const double attended = model.attended().in_documents(documents);
  for (Timed& operation : operations) {
    operation.flops *= share_of_counted(operation.name, attended, model.attended().in_sequences(shape.length));
  }
  const Cast copy = copy_on(*backend.device);
  const Gemm gemm = square_gemm_on(*backend.device, model.compute());
  operations.insert(operations.begin(), {{"copy", copy}, {"GEMM", gemm}});

  std::vector<OperationValue> calls;
  for (const Timed& operation : operations) calls.push_back(operation.call);
  Replay replay(backend, calls, {.vocab = vocab, .cu_seqlens = documents, .spread_bytes = options.spread_bytes});
  MemoryPlan plan;
  const auto workspace = plan.add("workspace", DType::kF32, model.workspace_shape());
  const Arena arena(plan, *backend.device);
  backend.ops->bind_workspace(arena[workspace]);

  OpTimes times{
      .documents = std::ssize(documents) - 1, .length = shape.length, .attended = attended, .heads = model.heads()};
  for (const Timed& operation : operations) times.ops.push_back({.name = operation.name, .flops = operation.flops});
  const auto medians = medians_in_turn(options.rounds, operations.size(), [&](size_t i) {
    replay.prepare(operations[i].call);
    replay.seconds(0);  // a first call loads kernels and chooses algorithms
    times.ops[i].bytes = replay.bytes();
    return replay.seconds(kSecondsPerRound);
  });
  for (size_t i = 0; i < operations.size(); ++i) times.ops[i].seconds = medians[i];
  times.copy_rate = times.ops[0].bytes / times.ops[0].seconds;
  const double n = double(gemm.c.dim(0));
  times.gemm_rate = 2 * n * n * n / times.ops[1].seconds;
  times.ops.erase(times.ops.begin(), times.ops.begin() + 2);
  return times;
}

}  // namespace tokamak
