#include "train/benchmark.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/rng.h"
#include "train/step.h"

namespace tokamak {

namespace {

constexpr int64_t kMostMeasuring = 20;
constexpr double kShort = 5e-3;                // seconds
constexpr int64_t kRandom = int64_t{1} << 22;  // values that are drawn, then repeated
constexpr double kLr = 1e-4;
constexpr int64_t kRecording = 4;  // each pass comes twice, in either place that batches lie in

// y = x w^T, dx = dy w and dw = dy^T x of a linear layer with `in` inputs and `out` outputs.
void add_linear(std::vector<GemmShape>& gemms, const std::string& name, int64_t tokens, int64_t in, int64_t out,
                int64_t count, DType compute, DType forward_output) {
  gemms.push_back({name + " forward", tokens, out, in, Transpose::kNo, Transpose::kYes, forward_output, count});
  gemms.push_back({name + " dx", tokens, in, out, Transpose::kNo, Transpose::kNo, compute, count});
  gemms.push_back({name + " dw", out, in, tokens, Transpose::kYes, Transpose::kNo, DType::kF32, count});
}

// Operands for any of the shapes.
class GemmBuffers {
 public:
  GemmBuffers(Backend& backend, const std::vector<GemmShape>& gemms, DType compute)
      : backend_(backend), stream_(backend.device->make_stream()) {
    MemoryPlan plan;
    const TimedOperands operands = plan_operands(gemms, compute, plan);
    arena_ = std::make_unique<Arena>(plan, *backend.device);
    a_ = (*arena_)[operands.a];
    b_ = (*arena_)[operands.b];
    c_ = (*arena_)[operands.c];
    fill_random(*backend.ops, *stream_, a_, c_);
    fill_random(*backend.ops, *stream_, b_, c_);
  }

  // Of one call. Short ones are repeated, so that neither the launch nor a clock that has gone down counts.
  double seconds(const GemmShape& g) {
    const Gemm call = call_of(g, a_, b_, c_);
    const auto timed = [&](int64_t calls) {
      const Stopwatch watch;
      for (int64_t i = 0; i < calls; ++i) backend_.ops->gemm(*stream_, call);
      stream_->synchronize();
      return watch.seconds() / static_cast<double>(calls);
    };
    const double once = timed(1);
    return once > kShort ? once : timed(static_cast<int64_t>(std::ceil(2 * kShort / once)));
  }

 private:
  Backend& backend_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Arena> arena_;
  Tensor a_, b_, c_;
};

// Sequences of random tokens.
struct RandomBatch {
  RandomBatch(int64_t sequences, int64_t length, int64_t vocab, int rank) {
    const RandomStream random(static_cast<uint64_t>(rank), "benchmark");
    for (int64_t i = 0; i < sequences * length; ++i) {
      tokens.push_back(static_cast<int32_t>(random.word(static_cast<uint64_t>(i)) % static_cast<uint64_t>(vocab)));
      positions.push_back(static_cast<int32_t>(i % length));
    }
    targets.assign(tokens.begin() + 1, tokens.end());
    targets.push_back(tokens.front());
    for (int64_t s = 0; s <= sequences; ++s) cu_seqlens.push_back(static_cast<int32_t>(s * length));
  }
  TokenBatch view() const { return {tokens, targets, positions, cu_seqlens}; }

  std::vector<int32_t> tokens, targets, positions, cu_seqlens;
};

double time_step(Assembly& assembly, const BatchShape& shape, const TokenBatch& batch, int64_t t) {
  assembly.comm().barrier();
  const Stopwatch watch;
  run_step(assembly, [&] { return batch; }, {.t = t, .lr = kLr, .micro_batches = shape.micro_batches()});
  assembly.compute().synchronize();
  assembly.comm().barrier();
  return watch.seconds();
}

// Until micro-batches run as they will from then on (runtime.cuda_graphs).
void warm_up(Assembly& assembly, const BatchShape& shape, const TokenBatch& batch) {
  time_step(assembly, shape, batch, 1);
  for (int64_t i = 0; i < kMostMeasuring && !assembly.model().settled(); ++i) time_step(assembly, shape, batch, 1);
  if (!assembly.model().replays()) return;
  for (int64_t i = 0; i < kRecording; ++i) time_step(assembly, shape, batch, 1);
}

}  // namespace

TimedOperands plan_operands(const std::vector<GemmShape>& gemms, DType compute, MemoryPlan& plan) {
  int64_t a = 0, b = 0, c = 0;
  for (const GemmShape& g : gemms) {
    a = std::max(a, g.m * g.k);
    b = std::max(b, g.k * g.n);
    c = std::max(c, g.m * g.n);
  }
  return {plan.add("operands of the GEMMs that are timed/a", compute, Shape{a}),
          plan.add("operands of the GEMMs that are timed/b", compute, Shape{b}),
          plan.add("operands of the GEMMs that are timed/c", DType::kF32, Shape{c})};
}

void fill_random(Ops& ops, Stream& stream, Tensor x, Tensor scratch) {
  const int64_t drawn = std::min({kRandom, x.count(), scratch.count()});
  const Tensor values = scratch.flat(0, drawn);
  ops.random_normal(stream, {.x = values, .seed = 1, .name = "bench"});
  for (int64_t begin = 0; begin < x.count(); begin += drawn) {
    const int64_t end = std::min(x.count(), begin + drawn);
    ops.cast(stream, {.src = values.flat(0, end - begin), .dst = x.flat(begin, end)});
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

Gemm call_of(const GemmShape& g, Tensor a, Tensor b, Tensor c) {
  const auto view = [](Tensor t, Transpose transpose, int64_t rows, int64_t columns) {
    const Tensor matrix = t.flat(0, rows * columns);
    return transpose == Transpose::kYes ? matrix.reshape({columns, rows}) : matrix.reshape({rows, columns});
  };
  return {.a = view(a, g.trans_a, g.m, g.k),
          .b = view(b, g.trans_b, g.k, g.n),
          .c = Tensor(c.data(), g.c, Shape{g.m, g.n}),
          .trans_a = g.trans_a,
          .trans_b = g.trans_b,
          .write = g.c == DType::kF32 && g.trans_a == Transpose::kYes ? Write::kAccumulate : Write::kOverwrite};
}

std::vector<GemmShape> step_gemms(const ModelConfig& config, int64_t tokens, int64_t head_rows, DType compute) {
  std::vector<GemmShape> gemms;
  const int64_t layers = config.num_hidden_layers, hidden = config.hidden_size;
  add_linear(gemms, "qkv", tokens, hidden, config.qkv_width(), layers, compute, compute);
  add_linear(gemms, "o", tokens, config.q_width(), hidden, layers, compute, compute);
  add_linear(gemms, "gate_up", tokens, hidden, 2 * config.intermediate_size, layers, compute, compute);
  add_linear(gemms, "down", tokens, config.intermediate_size, hidden, layers, compute, compute);
  const int64_t chunks = (tokens + head_rows - 1) / head_rows;
  add_linear(gemms, "head", std::min(tokens, head_rows), hidden, config.vocab_size, chunks, compute, DType::kF32);
  return gemms;
}

BenchmarkResult run_benchmark(Assembly& assembly, const BatchShape& shape, int64_t rounds) {
  const ModelConfig& config = assembly.model().config();
  Comm& comm = assembly.comm();
  Ops& ops = *assembly.backend().ops;
  const int64_t tokens = shape.micro_batch * shape.length;
  const DType compute = assembly.parameters().weights().dtype();
  const std::vector<GemmShape> gemms =
      step_gemms(config, tokens, ops.head_chunk_rows(tokens, config.vocab_size), compute);
  GemmBuffers buffers(assembly.backend(), gemms, compute);
  const RandomBatch batch(shape.micro_batch, shape.length, config.vocab_size, comm.rank());

  BenchmarkResult result;
  result.tokens_per_step = shape.micro_batches() * tokens * comm.size();
  std::vector<std::vector<double>> gemm_seconds(gemms.size());
  std::vector<double> step_seconds;
  for (const GemmShape& g : gemms) buffers.seconds(g);  // kernels are made at their first use
  warm_up(assembly, shape, batch.view());
  for (int64_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < gemms.size(); ++i) gemm_seconds[i].push_back(buffers.seconds(gemms[i]));
    step_seconds.push_back(time_step(assembly, shape, batch.view(), 2 + round));
  }
  ops.profile(&result.profile);
  time_step(assembly, shape, batch.view(), 2 + rounds);
  ops.profile(nullptr);

  double flops = 0, seconds = 0;
  for (size_t i = 0; i < gemms.size(); ++i) {
    const double once = median(gemm_seconds[i]);
    flops += static_cast<double>(gemms[i].count) * gemms[i].flops();
    seconds += static_cast<double>(gemms[i].count) * once;
    result.gemms.emplace_back(gemms[i], gemms[i].flops() / once);
  }
  result.gemm_rate = flops / seconds * comm.size();
  result.step_seconds = median(step_seconds);
  result.tokens_per_second = static_cast<double>(result.tokens_per_step) / result.step_seconds;
  return result;
}

}  // namespace tokamak
