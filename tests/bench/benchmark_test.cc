#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <map>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/device.h"
#include "bench/generate_benchmark.h"
#include "bench/op_benchmark.h"
#include "bench/replay.h"
#include "bench/step_benchmark.h"
#include "comm/plan_comm.h"
#include "plan/dry_run.h"
#include "plan/small_run.h"
#include "train/random_batch.h"
#include "train/run_plan.h"

using namespace tokamak;

namespace {

// Four sequences of 8 tokens in a step, two in a micro-batch.
const GlobalBatch kBatch = small_batch(1, 4);

}  // namespace

TEST_CASE("every operation of a step is timed by itself, with the bytes and FLOPs of its shapes") {
  Backend backend = make_cpu_backend();
  DryRun run(small_run(), kBatch, 1);
  const OpTimes times = benchmark_ops(backend, run, {.rounds = 1});
  CHECK(times.copy_rate > 0);
  CHECK(times.gemm_rate > 0);
  CHECK(times.documents == 2);
  CHECK(times.length == 8);
  CHECK(times.heads.q_heads == 4);
  CHECK(times.heads.kv_heads == 2);
  CHECK(times.heads.head_dim == 8);
  std::map<std::string, OpTime> by_name;
  for (const OpTime& op : times.ops) {
    CHECK(op.seconds > 0);
    CHECK(by_name.count(op.name) == 0);
    by_name[op.name] = op;
  }
  const double hidden = 16 * 32 * 2;  // bytes of (N, C) bf16
  CHECK(by_name.at("rmsnorm").bytes == 2 * hidden + 32 * 2 + 16 * 4);
  // With the gradient of the residual stream, and the norm's output once more; of dweight f32, read and written.
  CHECK(by_name.at("rmsnorm_backward").bytes == 5 * hidden + 32 * 2 + 16 * 4 + 2 * 32 * 4);
  CHECK(by_name.at("rope").bytes == 2 * 16 * (4 + 2) * 8 * 2 + 16 * 4);  // not the values
  CHECK(by_name.at("swiglu_backward").bytes == 5 * 16 * 48 * 2);         // SwiGLU's output is kept
  CHECK(by_name.at("embedding").bytes == 2 * hidden + 16 * 4);
  CHECK(by_name.at("attention").flops == 2 * 2 * (2 * 8 * 9 / 2) * 32);  // Q K^T and P V, half of each square
  CHECK(by_name.at("linear_cross_entropy").flops == 3 * 2.0 * 16 * 61 * 32);
  CHECK(by_name.at("gemm down dw").flops == 2.0 * 16 * 48 * 32);
  for (const char* name : {"attention_backward", "swiglu", "embedding_backward", "adamw", "sum_squares", "control_step",
                           "gemm qkv forward", "gemm head dx"}) {
    INFO(name);
    CHECK(by_name.count(name) == 1);
  }
}

TEST_CASE("operations timed on many copies of their operands are the same operations") {
  Backend backend = make_cpu_backend();
  DryRun run(small_run(), kBatch, 1);
  const OpTimes plain = benchmark_ops(backend, run, {.rounds = 1});
  const OpTimes spread = benchmark_ops(backend, run, {.rounds = 1, .spread_bytes = int64_t{1} << 20});
  REQUIRE(spread.ops.size() == plain.ops.size());
  for (size_t i = 0; i < plain.ops.size(); ++i) {
    CHECK(spread.ops[i].name == plain.ops[i].name);
    CHECK(spread.ops[i].bytes == plain.ops[i].bytes);
    CHECK(spread.ops[i].seconds > 0);
  }
}

TEST_CASE("attention that is timed by itself finds its documents by their tables, not by random ones") {
  struct Tables final : Observer {
    std::vector<Tensor> made, read;
    void begin(Stream&, const Call& call) override {
      if (const auto* const args = std::get_if<const DocumentTables*>(&call.arguments)) made.push_back((*args)->tables);
      if (const auto* const args = std::get_if<const Attention*>(&call.arguments)) read.push_back((*args)->tables);
    }
    void end(Stream&, const Call&) override {}
  };
  Backend backend = make_cpu_backend();
  const HeadLayout heads{4, 2, 8};
  std::array<std::byte, 5> places;  // replayed operands have memory of their own; these tell them apart
  auto described = [&, next = size_t{0}](DType dtype, const Shape& shape) mutable {
    return Tensor(&places.at(next++), dtype, shape);
  };
  const Attention attention{.qkv = described(DType::kBF16, {16, 64}),
                            .cu_seqlens = described(DType::kI32, {3}),
                            .out = described(DType::kBF16, {16, 32}),
                            .lse = described(DType::kF32, {4, 16}),
                            .heads = heads,
                            .scale = heads.scale(),
                            .max_length = 16,
                            .tables = described(DType::kI32, {DocumentTables::kRows, 4})};
  alignas(64) std::array<std::byte, 1 << 16> workspace;
  backend.ops->bind_workspace(Tensor(workspace.data(), DType::kF32, Shape{std::ssize(workspace) / 4}));
  Replay replay(backend, {attention}, {.vocab = 32, .cu_seqlens = {0, 5, 16}});
  Tables tables;
  const Observation observation(*backend.device, tables);
  replay.prepare(attention);
  replay.seconds(0);
  REQUIRE(tables.made.size() == 1);
  REQUIRE(!tables.read.empty());
  CHECK(tables.read[0].data() == tables.made[0].data());
}

TEST_CASE("a step is timed with all its GEMMs, which its profile has too") {
  const RunConfig config = small_run();
  DryRun run(config, kBatch, 1);
  const std::vector<RecordedGemm> gemms = gemms_of(run.record(), run.ops());
  Backend backend = make_cpu_backend();
  const auto comm = make_single_comm();
  Engine engine(engine_options(config, {.max_tokens = 2 * 8, .max_length = 8}), *comm, backend);
  engine.commit();
  engine.parameters().initialize(1, engine.compute());
  const StepBenchmark result = benchmark_step(engine, {.shape = run.shape(), .rounds = 2, .gemms = gemms});
  CHECK(result.tokens_per_step == 32);
  CHECK(result.step_seconds > 0);
  CHECK(result.tokens_per_second == Approx(32 / result.step_seconds));
  CHECK(result.gemms.size() == 5 * 3);
  CHECK(result.gemm_rate > 0);
  // The head's GEMMs are another operation's.
  for (const auto& [gemm, rate] : result.gemms) {
    INFO(gemm.name);
    CHECK(rate > 0);
    if (gemm.name.starts_with("head")) continue;
    const ProfileEntry& seen = result.profile.at("gemm " + gemm.name);
    CHECK(seen.calls == gemm.count);
    CHECK(seen.flops == static_cast<double>(gemm.count) * gemm.flops());
  }
}

TEST_CASE("of random documents, operations and a step count the attention inside documents only") {
  const RunConfig config = small_run();
  Backend backend = make_cpu_backend();
  DryRun run(config, kBatch, 1);
  RandomBatch batch(run.shape(), {.vocab = config.model.vocab_size, .mean_document = 3});
  const NextBatch next = batch.step();
  double pairs = 0, most = 0;  // of a step; of the micro-batch with the most documents, which operations are timed on
  size_t documents = 0;
  for (int64_t m = 0; m < run.shape().micro_batches(); ++m) {
    const auto bounds = next().cu_seqlens;
    const double of_batch = run.model().attended().in_documents(bounds) * bounds.back();
    pairs += of_batch;
    if (bounds.size() - 1 > documents) most = of_batch;
    documents = std::max(documents, bounds.size() - 1);
  }
  REQUIRE(pairs < 2 * (2 * 8 * 9 / 2));

  const OpTimes times = benchmark_ops(backend, run, {.rounds = 1, .mean_document = 3});
  CHECK(times.documents == static_cast<int64_t>(documents));
  CHECK(times.attended == Approx(most / 16));
  for (const OpTime& op : times.ops) {
    if (op.name == "attention") CHECK(op.flops == Approx(2 * 2 * most * 32));
    if (op.name == "attention_backward") CHECK(op.flops == Approx(5 * 2 * most * 32));
    if (op.name == "gemm down dw") CHECK(op.flops == 2.0 * 16 * 48 * 32);
  }

  const auto comm = make_single_comm();
  Engine engine(engine_options(config, {.max_tokens = 2 * 8, .max_length = 8}), *comm, backend);
  engine.commit();
  engine.parameters().initialize(1, engine.compute());
  const StepBenchmark result = benchmark_step(
      engine, {.shape = run.shape(), .rounds = 1, .mean_document = 3, .gemms = gemms_of(run.record(), run.ops())});
  CHECK(result.attended == Approx(pairs / 32));
  CHECK(result.profile.at("attention").flops == Approx(3 * 2 * 2 * pairs * 32));
}

TEST_CASE("on a full device activations leave what the benchmark takes, and the batch is cut as without it") {
  class Gpu : public CpuDevice {
   public:
    bool uses_host_memory() const override { return false; }
  };
  Backend backend{std::make_unique<Gpu>(), std::make_unique<CpuOps>()};
  const auto comm = make_single_comm();
  RunConfig config = small_run();
  const auto needed = [&](RecomputeMode mode) {
    config.activation_checkpoint = {mode, {}};
    const PlannedBenchmark planned = plan_benchmark(config, kBatch, *comm, backend, {INT64_MAX, INT64_MAX});
    return planned_bytes(planned.plan, *backend.device);
  };
  const int64_t none = needed(RecomputeMode::kNone), full = needed(RecomputeMode::kFull);
  const int64_t bytes = (none + full) / 2;
  config.activation_checkpoint = {RecomputeMode::kSelective, {}};
  const PlannedRun training = plan_run(config, kBatch, *comm, backend, PlanFor::kTraining, bytes, bytes);
  const PlannedBenchmark planned = plan_benchmark(config, kBatch, *comm, backend, {bytes, bytes}, 5);
  CHECK(planned_bytes(planned.plan, *backend.device) <= bytes);
  CHECK(planned_bytes(planned.plan, *backend.device) > full);
  CHECK(planned_bytes(planned.run.engine->plan(), *backend.device) <
        planned_bytes(training.engine->plan(), *backend.device));
  CHECK(planned.run.shape.micro_batch == training.shape.micro_batch);
  CHECK(planned.run.shape.micro_batches() == 5);
  CHECK(!planned.run.activation_checkpoint.kept_bytes.is_auto());
}

TEST_CASE("a benchmark plans no host memory on a GPU, where training plans a snapshot of 12 bytes a parameter") {
  RunConfig config;
  config.model.hidden_size = 4096;  // configs/llama-8b.yaml
  config.model.intermediate_size = 14336;
  config.model.num_hidden_layers = 32;
  config.model.num_attention_heads = 32;
  config.model.num_key_value_heads = 8;
  config.model.vocab_size = 128256;
  config.runtime.backend = BackendKind::kCuda;
  config.training.micro_batch_size = {1};
  const GlobalBatch batch{.length = 8192, .sequences_per_step = 2, .sequences_per_rank = 2, .total_steps = 1};
  Backend backend = plan_cuda_backend(config.runtime);
  const auto comm = make_plan_comm(1, *backend.device);
  const auto pinned = [](const MemoryPlan& plan) { return plan.total_bytes(MemoryKind::kPinned); };
  CHECK(pinned(plan_benchmark(config, batch, *comm, backend, {INT64_MAX, INT64_MAX}).plan) == 0);
  CHECK(pinned(DryRun(config, batch, 1, INT64_MAX, PlanFor::kBenchmark).memory()) == 0);
  CHECK(pinned(DryRun(config, batch, 1).memory()) > 12 * int64_t{8030261248});
}

TEST_CASE("generation is timed beside a copy and the GEMMs of its prompts") {
  const RunConfig config = small_run();
  Backend backend = make_cpu_backend();
  const auto comm = make_single_comm();
  Engine engine(engine_options(config, {.max_tokens = 8, .max_length = 12, .training = false, .cached_sequences = 2}),
                *comm, backend);
  engine.commit();
  engine.parameters().initialize(1, engine.compute());
  const GenerateTimes times = benchmark_generate(engine, {.sequences = 2, .prompt = 8, .tokens = 4, .rounds = 1});
  // All matrices but the embedding's lookup, in bf16.
  CHECK(times.weight_bytes == 2 * (3 * (32 * (32 + 2 * 16) + 32 * 32 + 3 * 32 * 48) + 61 * 32 + 7 * 32));
  CHECK(times.copy_rate > 0);
  CHECK(times.prompt_rate > 0);
  CHECK(times.prompt_gemm_rate > 0);
  CHECK(times.decode_rate() == Approx(2 / times.decode_seconds));
  CHECK(times.share_of_copy() == Approx(times.weight_bytes / times.decode_seconds / times.copy_rate));
  CHECK(times.share_of_traffic() == Approx(times.share_of_copy() / 2));
}
