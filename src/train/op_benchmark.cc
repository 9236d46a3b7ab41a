#include "train/op_benchmark.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/clock.h"
#include "base/rng.h"
#include "train/benchmark.h"

namespace tokamak {

namespace {

// One call is timed together with as many others as fill this time, so that the launch of the first and the wait for
// the last do not count.
constexpr double kSecondsPerRound = 0.02;
constexpr int64_t kMostCalls = 100;

class OpBenchmark {
 public:
  OpBenchmark(Backend& backend, const ModelConfig& config, const OpBenchmarkOptions& options)
      : ops_(*backend.ops),
        device_(*backend.device),
        config_(config),
        options_(options),
        stream_(device_.make_stream()),
        heads_{config.num_attention_heads, config.kv_heads(), config.head_size()},
        tokens_(options.sequences * options.length) {
    plan();
    arena_ = std::make_unique<Arena>(plan_, device_);
    fill();
  }

  OpTimes run() {
    OpTimes times{.documents = options_.sequences, .length = options_.length, .heads = heads_};
    times.copy_rate = rate_of_copy();
    times.gemm_rate = rate_of_gemm();
    time_norms(times);
    time_attention(times);
    time_mlp(times);
    time_ends(times);
    time_optimizer(times);
    time_gemms(times);
    return times;
  }

 private:
  struct Buffers {
    MemoryPlan::Slot hidden[5], weight, rstd, dweight, qkv, dqkv, heads_out, dheads_out, lse, gate_up, dgate_up, inner,
        ids, positions, cu_seqlens, rope, table, dtable, token_loss, sums, control, flat[4], flat_bf16, workspace, a, b,
        c;
  };

  int64_t square() const { return device_.uses_host_memory() ? 1024 : 8192; }
  // Of the flat state that the optimizer's operations are timed on: far larger than any cache.
  int64_t flat() const { return device_.uses_host_memory() ? int64_t{1} << 23 : int64_t{1} << 27; }

  void plan() {
    const DType act = options_.compute;
    const int64_t n = tokens_, hidden = config_.hidden_size, inner = config_.intermediate_size;
    const auto add = [&](const char* name, DType dtype, Shape shape) { return plan_.add(name, dtype, shape); };
    for (auto& slot : s_.hidden) slot = add("hidden", act, Shape{n, hidden});
    s_.weight = add("weight", act, Shape{hidden});
    s_.rstd = add("rstd", DType::kF32, Shape{n});
    s_.dweight = add("dweight", DType::kF32, Shape{hidden});
    s_.qkv = add("qkv", act, Shape{n, heads_.qkv_width()});
    s_.dqkv = add("dqkv", act, Shape{n, heads_.qkv_width()});
    s_.heads_out = add("heads", act, Shape{n, heads_.q_width()});
    s_.dheads_out = add("dheads", act, Shape{n, heads_.q_width()});
    s_.lse = add("lse", DType::kF32, Shape{heads_.q_heads, n});
    s_.gate_up = add("gate_up", act, Shape{n, 2 * inner});
    s_.dgate_up = add("dgate_up", act, Shape{n, 2 * inner});
    s_.inner = add("inner", act, Shape{n, inner});
    s_.ids = add("ids", DType::kI32, Shape{n});
    s_.positions = add("positions", DType::kI32, Shape{n});
    s_.cu_seqlens = add("cu_seqlens", DType::kI32, Shape{options_.sequences + 1});
    s_.rope = add("rope", DType::kF32, Shape{options_.length, heads_.head_dim});
    s_.table = add("table", act, Shape{config_.vocab_size, hidden});
    s_.dtable = add("dtable", DType::kF32, Shape{config_.vocab_size, hidden});
    s_.token_loss = add("token_loss", DType::kF32, Shape{n});
    s_.sums = add("sums", DType::kF64, Shape{kStepSums});
    s_.control = add("control", DType::kF32, Shape{kStepControls});
    for (auto& slot : s_.flat) slot = add("flat", DType::kF32, Shape{flat()});
    s_.flat_bf16 = add("flat bf16", DType::kBF16, Shape{flat()});
    s_.workspace = add(
        "workspace", DType::kF32,
        Shape{(ops_.workspace_bytes({n, hidden, inner, config_.vocab_size, heads_, options_.length, act}) + 3) / 4});
    int64_t a = square() * square(), b = a, c = a;
    for (const GemmShape& g : gemms()) {
      a = std::max(a, g.m * g.k);
      b = std::max(b, g.k * g.n);
      c = std::max(c, g.m * g.n);
    }
    s_.a = add("a", act, Shape{a});
    s_.b = add("b", act, Shape{b});
    s_.c = add("c", DType::kF32, Shape{c});
  }

  Tensor at(MemoryPlan::Slot slot) const { return (*arena_)[slot]; }

  void fill() {
    ops_.bind_workspace(at(s_.workspace));
    for (const auto slot : {s_.hidden[0], s_.hidden[1], s_.hidden[2], s_.weight, s_.qkv, s_.dheads_out, s_.gate_up,
                            s_.inner, s_.table, s_.a, s_.b}) {
      fill_random(ops_, *stream_, at(slot), at(s_.flat[0]));
    }
    for (const auto slot : s_.flat) ops_.fill(*stream_, {.x = at(slot), .value = 1e-3});
    ops_.fill(*stream_, {.x = at(s_.rstd), .value = 1});
    ops_.fill(*stream_, {.x = at(s_.rope), .value = 0.7});
    ops_.fill(*stream_, {.x = at(s_.control), .value = 1});

    std::vector<int32_t> ids, positions, bounds;
    const RandomStream stream(1, "bench ids");
    for (int64_t i = 0; i < tokens_; ++i) {
      ids.push_back(
          static_cast<int32_t>(stream.word(static_cast<uint64_t>(i)) % static_cast<uint64_t>(config_.vocab_size)));
      positions.push_back(static_cast<int32_t>(i % options_.length));
    }
    for (int64_t i = 0; i <= options_.sequences; ++i) bounds.push_back(static_cast<int32_t>(i * options_.length));
    device_.copy_to_device(*stream_, ids.data(), at(s_.ids));
    device_.copy_to_device(*stream_, positions.data(), at(s_.positions));
    device_.copy_to_device(*stream_, bounds.data(), at(s_.cu_seqlens));
    stream_->synchronize();
  }

  double seconds_of(const std::function<void()>& call) {
    const auto timed = [&](int64_t calls) {
      const Stopwatch watch;
      for (int64_t i = 0; i < calls; ++i) call();
      stream_->synchronize();
      return watch.seconds() / static_cast<double>(calls);
    };
    timed(1);  // kernels are loaded, algorithms chosen
    const double once = timed(1);
    const auto calls = std::clamp(static_cast<int64_t>(kSecondsPerRound / once), int64_t{1}, kMostCalls);
    std::vector<double> seconds;
    for (int64_t round = 0; round < options_.rounds; ++round) seconds.push_back(timed(calls));
    return median(std::move(seconds));
  }

  // `touched`: the tensors that the call reads or writes, each as often as it must.
  void time(OpTimes& times, const std::string& name, std::initializer_list<Tensor> touched, double flops,
            const std::function<void()>& call) {
    double bytes = 0;
    for (const Tensor& tensor : touched) bytes += static_cast<double>(tensor.bytes());
    times.ops.push_back({name, seconds_of(call), bytes, flops});
  }

  double rate_of_copy() {
    const Tensor from = at(s_.flat[0]), to = at(s_.flat[1]);
    const double seconds = seconds_of([&] { ops_.cast(*stream_, {.src = from, .dst = to}); });
    return 2.0 * static_cast<double>(from.bytes()) / seconds;
  }

  double rate_of_gemm() {
    const int64_t n = square();
    const auto view = [&](MemoryPlan::Slot slot) { return at(slot).flat(0, n * n).reshape({n, n}); };
    const Tensor c(at(s_.c).data(), options_.compute, Shape{n, n});
    const double seconds = seconds_of(
        [&] { ops_.gemm(*stream_, {.a = view(s_.a), .b = view(s_.b), .c = c, .trans_b = Transpose::kYes}); });
    return 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / seconds;
  }

  void time_norms(OpTimes& times) {
    const Tensor x = at(s_.hidden[0]), residual = at(s_.hidden[1]), dy = at(s_.hidden[2]), y = at(s_.hidden[3]),
                 sum = at(s_.hidden[4]), weight = at(s_.weight), rstd = at(s_.rstd);
    time(times, "rmsnorm", {x, residual, sum, y, weight, rstd}, 0, [&] {
      ops_.rmsnorm(*stream_, {.x = x, .residual = residual, .weight = weight, .sum = sum, .y = y, .rstd = rstd});
    });
    time(times, "rmsnorm_backward", {dy, x, residual, y, sum, weight, rstd}, 0, [&] {
      ops_.rmsnorm_backward(*stream_, {.dy = dy,
                                       .x = x,
                                       .weight = weight,
                                       .rstd = rstd,
                                       .dresidual = residual,
                                       .dx = y,
                                       .dweight = at(s_.dweight),
                                       .y = sum});
    });
  }

  void time_attention(OpTimes& times) {
    const Tensor qkv = at(s_.qkv), out = at(s_.heads_out), dout = at(s_.dheads_out), dqkv = at(s_.dqkv),
                 lse = at(s_.lse);
    const Tensor rotated(qkv.data(), qkv.dtype(), Shape{tokens_, heads_.q_width() + heads_.kv_width()});
    time(times, "rope", {rotated, rotated, at(s_.positions)}, 0, [&] {
      ops_.rope(*stream_, {.qkv = qkv, .positions = at(s_.positions), .table = at(s_.rope), .heads = heads_});
    });
    const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(heads_.head_dim)));
    const double pairs = 0.5 * static_cast<double>(tokens_) * static_cast<double>(options_.length + 1);
    const double product = 2 * pairs * static_cast<double>(heads_.q_width());
    const Tensor bounds = at(s_.cu_seqlens);
    time(times, "attention", {qkv, out, lse}, 2 * product, [&] {
      ops_.attention(*stream_, {.qkv = qkv,
                                .cu_seqlens = bounds,
                                .out = out,
                                .lse = lse,
                                .heads = heads_,
                                .scale = scale,
                                .max_length = options_.length});
    });
    time(times, "attention_backward", {qkv, out, dout, dqkv, lse}, 5 * product, [&] {
      ops_.attention_backward(*stream_, {.qkv = qkv,
                                         .cu_seqlens = bounds,
                                         .out = out,
                                         .lse = lse,
                                         .dout = dout,
                                         .dqkv = dqkv,
                                         .heads = heads_,
                                         .scale = scale,
                                         .max_length = options_.length});
    });
  }

  void time_mlp(OpTimes& times) {
    const Tensor gate_up = at(s_.gate_up), inner = at(s_.inner), dgate_up = at(s_.dgate_up);
    time(times, "swiglu", {gate_up, inner}, 0, [&] { ops_.swiglu(*stream_, {.gate_up = gate_up, .out = inner}); });
    time(times, "swiglu_backward", {gate_up, inner, inner, dgate_up}, 0, [&] {
      ops_.swiglu_backward(*stream_, {.gate_up = gate_up, .dout = inner, .dgate_up = dgate_up, .out = inner});
    });
  }

  // Embedding and head.
  void time_ends(OpTimes& times) {
    const Tensor ids = at(s_.ids), table = at(s_.table), dtable = at(s_.dtable), x = at(s_.hidden[3]);
    time(times, "embedding", {x, x, ids}, 0, [&] { ops_.embedding(*stream_, {.ids = ids, .table = table, .out = x}); });
    const Tensor rows(dtable.data(), DType::kF32, x.shape());  // read and written for each token
    time(times, "embedding_backward", {x, rows, rows, ids}, 0,
         [&] { ops_.embedding_backward(*stream_, {.ids = ids, .dout = x, .dtable = dtable}); });
    const double product = 2 * static_cast<double>(tokens_) * static_cast<double>(config_.vocab_size) *
                           static_cast<double>(config_.hidden_size);
    time(times, "linear_cross_entropy", {x, table, x, dtable}, 3 * product, [&] {
      ops_.linear_cross_entropy(*stream_, {.hidden = at(s_.hidden[0]),
                                           .weight = table,
                                           .targets = ids,
                                           .token_loss = at(s_.token_loss),
                                           .sums = at(s_.sums),
                                           .dhidden = x,
                                           .dweight = dtable,
                                           .write = Write::kOverwrite});
    });
  }

  void time_optimizer(OpTimes& times) {
    const Tensor master = at(s_.flat[0]), m = at(s_.flat[1]), v = at(s_.flat[2]), grad = at(s_.flat[3]),
                 weights = at(s_.flat_bf16);
    time(times, "adamw", {master, master, m, m, v, v, grad, weights}, 0, [&] {
      ops_.adamw(*stream_, {.master = master,
                            .exp_avg = m,
                            .exp_avg_sq = v,
                            .grad = grad,
                            .weights = weights,
                            .control = at(s_.control),
                            .pieces = {{master.count(), 0.1}},
                            .lr = 1e-4,
                            .beta1 = 0.9,
                            .beta2 = 0.95,
                            .eps = 1e-8});
    });
    time(times, "sum_squares", {grad}, 0, [&] { ops_.sum_squares(*stream_, {.x = grad, .sums = at(s_.sums)}); });
    time(times, "cast", {grad, weights}, 0, [&] { ops_.cast(*stream_, {.src = grad, .dst = weights}); });
  }

  std::vector<GemmShape> gemms() const {
    return step_gemms(config_, tokens_, ops_.head_chunk_rows(tokens_, config_.vocab_size), options_.compute);
  }

  void time_gemms(OpTimes& times) {
    for (const GemmShape& g : gemms()) {
      const Gemm call = call_of(g, at(s_.a), at(s_.b), at(s_.c));
      time(times, "gemm " + g.name, {call.a, call.b, call.c}, g.flops(), [&] { ops_.gemm(*stream_, call); });
    }
  }

  Ops& ops_;
  Device& device_;
  const ModelConfig& config_;
  OpBenchmarkOptions options_;
  std::unique_ptr<Stream> stream_;
  HeadLayout heads_;
  int64_t tokens_;
  MemoryPlan plan_;
  Buffers s_;
  std::unique_ptr<Arena> arena_;
};

}  // namespace

OpTimes benchmark_ops(Backend& backend, const ModelConfig& config, const OpBenchmarkOptions& options) {
  return OpBenchmark(backend, config, options).run();
}

}  // namespace tokamak
