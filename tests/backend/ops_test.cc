// Each public operation (ops.cc) refuses arguments that break the contract before it touches memory.
#include "support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

constexpr DType kF32 = DType::kF32, kBF16 = DType::kBF16, kI32 = DType::kI32, kF64 = DType::kF64;

// A call that must be refused, and why.
struct Refusal {
  const char* why;
  std::function<void(Ops&, Stream&)> call;
};

HostTensor f32(Shape shape) { return HostTensor(kF32, shape); }
HostTensor bf(Shape shape) { return HostTensor(kBF16, shape); }
HostTensor i32(Shape shape) { return HostTensor(kI32, shape); }
HostTensor f64(Shape shape) { return HostTensor(kF64, shape); }

const HeadLayout kHeads{2, 1, 4};

std::vector<Refusal> refusals() {
  static const HostTensor a = f32({3, 4}), b = f32({4, 5}), c = f32({3, 5}), half = bf({3, 4}), ids = i32({3}),
                          cu = i32({2}), qkv = f32({3, 16}), out = f32({3, 8}), lse = f32({2, 3}),
                          sums = f64({kStepSums}), control = f32({kStepControls}), x = f32({8}), y = f32({8}),
                          z = f32({8}), v = f32({8}), column = f32({4}), row = f32({3}), wide = f32({3, 8}),
                          x3 = f32({3, 4}), y3 = f32({3, 4}), table = f32({7, 4}), hidden = f32({3, 4});
  const auto adamw = [](Ops& o, Stream& s, const std::vector<AdamW::Group>& groups) {
    o.adamw(s, {.master = x, .exp_avg = y, .exp_avg_sq = v, .grad = z, .control = control, .groups = groups});
  };
  return {
      {"gemm: inner sizes differ", [](Ops& o, Stream& s) { o.gemm(s, {.a = a, .b = a, .c = c}); }},
      {"gemm: output of another shape", [](Ops& o, Stream& s) { o.gemm(s, {.a = a, .b = b, .c = a}); }},
      {"gemm: operands of two types", [](Ops& o, Stream& s) { o.gemm(s, {.a = half, .b = b, .c = c}); }},
      {"gemm: output in bf16 of f32 operands",
       [](Ops& o, Stream& s) {
         o.gemm(s, {.a = a, .b = b, .c = bf({3, 5})});
       }},
      {"gemm: no output", [](Ops& o, Stream& s) { o.gemm(s, {.a = a, .b = b, .c = {}}); }},
      {"gemm: residual of another shape",
       [](Ops& o, Stream& s) { o.gemm(s, {.a = a, .b = b, .c = c, .residual = a}); }},
      {"gemm: a residual that is the output",
       [](Ops& o, Stream& s) { o.gemm(s, {.a = a, .b = b, .c = c, .residual = c}); }},
      {"gemm: accumulation with a residual",
       [](Ops& o, Stream& s) {
         o.gemm(s, {.a = a, .b = b, .c = c, .residual = f32({3, 5}), .write = Write::kAccumulate});
       }},
      {"gemm: accumulation into bf16",
       [](Ops& o, Stream& s) {
         o.gemm(s, {.a = half, .b = bf({4, 5}), .c = bf({3, 5}), .write = Write::kAccumulate});
       }},
      {"gemm: bias of another length", [](Ops& o, Stream& s) { o.gemm(s, {.a = a, .b = b, .c = c, .bias = column}); }},
      {"gemm: bias of another type", [](Ops& o, Stream& s) { o.gemm(s, {.a = a, .b = b, .c = c, .bias = bf({5})}); }},
      {"gemm: bias and a scaled residual",
       [](Ops& o, Stream& s) {
         o.gemm(s, {.a = a, .b = b, .c = c, .residual = f32({3, 5}), .bias = f32({5}), .residual_scale = 2});
       }},
      {"gemm: accumulation with a bias",
       [](Ops& o, Stream& s) { o.gemm(s, {.a = a, .b = b, .c = c, .bias = f32({5}), .write = Write::kAccumulate}); }},
      {"gemm: accumulation of a scaled product",
       [](Ops& o, Stream& s) { o.gemm(s, {.a = a, .b = b, .c = c, .write = Write::kAccumulate, .alpha = 2}); }},
      {"gemm: a scaled product and a bias",
       [](Ops& o, Stream& s) { o.gemm(s, {.a = a, .b = b, .c = c, .bias = f32({5}), .alpha = 2}); }},
      {"gemm: a scale without a residual",
       [](Ops& o, Stream& s) { o.gemm(s, {.a = a, .b = b, .c = c, .residual_scale = 2}); }},
      {"gemm: a residual times 0",
       [](Ops& o, Stream& s) {
         o.gemm(s, {.a = a, .b = b, .c = c, .residual = f32({3, 5}), .residual_scale = 0});
       }},
      {"gemm: a scaled residual without a product",
       [](Ops& o, Stream& s) {
         o.gemm(s, {.a = f32({3, 0}), .b = f32({0, 5}), .c = c, .residual = f32({3, 5}), .residual_scale = 2});
       }},
      {"gemm: output over an operand",
       [](Ops& o, Stream& s) {
         o.gemm(s, {.a = f32({4, 4}), .b = table.view().rows(0, 4), .c = table.view().rows(1, 5)});
       }},
      {"embedding: ids not i32", [](Ops& o, Stream& s) { o.embedding(s, {.ids = row, .table = table, .out = a}); }},
      {"embedding: out of another width",
       [](Ops& o, Stream& s) { o.embedding(s, {.ids = ids, .table = table, .out = c}); }},
      {"embedding_backward: table in bf16",
       [](Ops& o, Stream& s) {
         o.embedding_backward(s, {.ids = ids, .dout = a, .dtable = bf({7, 4})});
       }},
      {"rmsnorm: weight of another type",
       [](Ops& o, Stream& s) { o.rmsnorm(s, {.x = a, .weight = bf({4}), .y = y3, .rstd = row}); }},
      {"rmsnorm: y over x", [](Ops& o, Stream& s) { o.rmsnorm(s, {.x = a, .weight = column, .y = a, .rstd = row}); }},
      {"rmsnorm: onto of another shape",
       [](Ops& o, Stream& s) {
         o.rmsnorm(s, {.x = a, .weight = column, .y = y3, .rstd = row, .onto = f32({3, 5})});
       }},
      {"rmsnorm_backward: dx over x",
       [](Ops& o, Stream& s) {
         o.rmsnorm_backward(s, {.dy = x3, .x = a, .weight = column, .rstd = row, .dx = a, .dweight = f32({4})});
       }},
      {"column_sums: sums of another length", [](Ops& o, Stream& s) { o.column_sums(s, {.x = a, .sums = row}); }},
      {"column_sums: sums in bf16", [](Ops& o, Stream& s) { o.column_sums(s, {.x = a, .sums = bf({4})}); }},
      {"qk_norm: width is not that of the heads",
       [](Ops& o, Stream& s) {
         o.qk_norm(s, {out, column, f32({4}), out, f32({9}), kHeads});
       }},
      {"qk_norm: a weight for every element",
       [](Ops& o, Stream& s) {
         o.qk_norm(s, {qkv, f32({8}), column, qkv, f32({9}), kHeads});
       }},
      {"qk_norm: a head's weight for all heads together",
       [](Ops& o, Stream& s) {
         o.qk_norm(s, {qkv, column, f32({4}), qkv, f32({6}), kHeads, 1e-5f, HeadNorm::kTogether});
       }},
      {"qk_norm: rstd of the query heads alone",
       [](Ops& o, Stream& s) {
         o.qk_norm(s, {qkv, column, f32({4}), qkv, f32({6}), kHeads});
       }},
      {"qk_norm: out over a part of qkv",
       [](Ops& o, Stream& s) {
         const HostTensor both = f32({4, 16});
         o.qk_norm(s, {both.view().rows(0, 3), column, f32({4}), both.view().rows(1, 4), f32({9}), kHeads});
       }},
      {"qk_norm_backward: gradient over the input",
       [](Ops& o, Stream& s) {
         o.qk_norm_backward(s, {qkv, qkv, column, f32({4}), f32({9}), f32({4}), f32({4}), kHeads});
       }},
      {"qk_norm_backward: one gradient for both weights",
       [](Ops& o, Stream& s) {
         const HostTensor both = f32({4});
         o.qk_norm_backward(s, {f32({3, 16}), qkv, column, f32({4}), f32({9}), both, both, kHeads});
       }},
      {"rope: width is not that of the heads",
       [](Ops& o, Stream& s) { o.rope(s, {.qkv = out, .positions = ids, .table = table, .heads = kHeads}); }},
      {"rope: table narrower than a head",
       [](Ops& o, Stream& s) {
         o.rope(s, {.qkv = qkv, .positions = ids, .table = f32({9, 2}), .heads = kHeads});
       }},
      {"document_tables: no entry for the end",
       [](Ops& o, Stream& s) {
         o.document_tables(s, {.cu_seqlens = cu, .tables = i32({DocumentTables::kRows, 1}), .heads = kHeads});
       }},
      {"document_tables: a row of another count",
       [](Ops& o, Stream& s) {
         o.document_tables(s, {.cu_seqlens = cu, .tables = i32({DocumentTables::kRows - 1, 4}), .heads = kHeads});
       }},
      {"document_tables: in f32",
       [](Ops& o, Stream& s) {
         o.document_tables(s, {.cu_seqlens = cu, .tables = f32({DocumentTables::kRows, 4}), .heads = kHeads});
       }},
      {"attention: tables of fewer documents",
       [](Ops& o, Stream& s) {
         o.attention(s, {qkv, cu, out, lse, kHeads, 1.0f, 3, i32({DocumentTables::kRows, 1})});
       }},
      {"attention_backward: tables of fewer documents",
       [](Ops& o, Stream& s) {
         o.attention_backward(
             s, {qkv, cu, out, lse, wide, f32({3, 16}), kHeads, 1.0f, 3, i32({DocumentTables::kRows, 1})});
       }},
      {"attention: odd head size",
       [](Ops& o, Stream& s) {
         o.attention(s, {f32({3, 9}), cu, a, f32({1, 3}), {1, 1, 3}, 1.0f, 3});
       }},
      {"attention: query heads not a multiple of key-value heads",
       [](Ops& o, Stream& s) {
         o.attention(s, {f32({3, 14}), cu, f32({3, 6}), f32({3, 3}), {3, 2, 2}, 1.0f, 3});
       }},
      {"attention: lse transposed",
       [](Ops& o, Stream& s) {
         o.attention(s, {qkv, cu, out, f32({3, 2}), kHeads, 1.0f, 3});
       }},
      {"attention: no longest length",
       [](Ops& o, Stream& s) {
         o.attention(s, {qkv, cu, out, lse, kHeads, 1.0f, 0});
       }},
      {"attention_backward: gradient over the input",
       [](Ops& o, Stream& s) {
         o.attention_backward(s, {qkv, cu, out, lse, wide, qkv, kHeads, 1.0f, 3});
       }},
      {"swiglu: gate_up not twice as wide", [](Ops& o, Stream& s) { o.swiglu(s, {.gate_up = a, .out = x3}); }},
      {"swiglu_backward: dgate_up over dout",
       [](Ops& o, Stream& s) {
         const HostTensor both = f32({6, 4});
         o.swiglu_backward(s, {wide, both.view().rows(0, 3), both.view().rows(0, 6).reshape({3, 8})});
       }},
      {"linear_cross_entropy: dhidden without dweight",
       [](Ops& o, Stream& s) {
         o.linear_cross_entropy(
             s, {.hidden = hidden, .weight = table, .targets = ids, .token_loss = row, .sums = sums, .dhidden = x3});
       }},
      {"linear_cross_entropy: dweight without dhidden",
       [](Ops& o, Stream& s) {
         o.linear_cross_entropy(s, {.hidden = hidden,
                                    .weight = table,
                                    .targets = ids,
                                    .token_loss = row,
                                    .sums = sums,
                                    .dweight = f32({7, 4})});
       }},
      {"linear_cross_entropy: sums in f32",
       [](Ops& o, Stream& s) {
         o.linear_cross_entropy(
             s, {.hidden = hidden, .weight = table, .targets = ids, .token_loss = row, .sums = f32({kStepSums})});
       }},
      {"control_step: control too short",
       [](Ops& o, Stream& s) { o.control_step(s, {.sums = sums, .control = f32({2})}); }},
      {"adamw: moments are one tensor",
       [](Ops& o, Stream& s) {
         o.adamw(s, {.master = x, .exp_avg = y, .exp_avg_sq = y, .grad = z, .control = control, .groups = {{8, 0}}});
       }},
      {"adamw: moments of two types",
       [](Ops& o, Stream& s) {
         o.adamw(s,
                 {.master = x, .exp_avg = bf({8}), .exp_avg_sq = v, .grad = z, .control = control, .groups = {{8, 0}}});
       }},
      {"adamw: moments in f64",
       [](Ops& o, Stream& s) {
         const HostTensor m = f64({8}), of_squares = f64({8});
         o.adamw(
             s,
             {.master = x, .exp_avg = m, .exp_avg_sq = of_squares, .grad = z, .control = control, .groups = {{8, 0}}});
       }},
      {"adamw: rounding of an element before the first",
       [](Ops& o, Stream& s) {
         o.adamw(s, {.master = x,
                     .exp_avg = bf({8}),
                     .exp_avg_sq = bf({8}),
                     .grad = z,
                     .control = control,
                     .groups = {{8, 0}},
                     .rounding = {.first = -4}});
       }},
      {"adamw: gradient of another size",
       [](Ops& o, Stream& s) {
         o.adamw(s,
                 {.master = x, .exp_avg = y, .exp_avg_sq = v, .grad = column, .control = control, .groups = {{8, 0}}});
       }},
      {"adamw: updates over the masters",
       [](Ops& o, Stream& s) {
         o.adamw(s, {.master = x,
                     .exp_avg = y,
                     .exp_avg_sq = v,
                     .grad = z,
                     .control = control,
                     .groups = {{8, 0}},
                     .updates = x});
       }},
      {"adamw: no groups", [adamw](Ops& o, Stream& s) { adamw(o, s, {}); }},
      {"adamw: groups end before the tensors do",
       [adamw](Ops& o, Stream& s) {
         adamw(o, s, {{4, 0}, {7, 0}});
       }},
      {"adamw: groups end behind the tensors",
       [adamw](Ops& o, Stream& s) {
         adamw(o, s, {{4, 0}, {9, 0}});
       }},
      {"adamw: groups go back",
       [adamw](Ops& o, Stream& s) {
         adamw(o, s, {{6, 0}, {5, 0}, {8, 0}});
       }},
      {"adamw: more groups than there is room for",
       [adamw](Ops& o, Stream& s) {
         adamw(o, s, std::vector<AdamW::Group>(AdamW::kMostGroups + 1, {8, 0}));
       }},
      {"muon_momentum: gradient in bf16",
       [](Ops& o, Stream& s) {
         o.muon_momentum(s, {.grad = bf({8}), .momentum = x, .direction = y, .control = control});
       }},
      {"muon_momentum: direction of another size",
       [](Ops& o, Stream& s) {
         o.muon_momentum(s, {.grad = x, .momentum = y, .direction = column, .control = control});
       }},
      {"muon_momentum: direction over the momentum",
       [](Ops& o, Stream& s) { o.muon_momentum(s, {.grad = x, .momentum = y, .direction = y, .control = control}); }},
      {"muon_momentum: rounding of an element before the first",
       [](Ops& o, Stream& s) {
         o.muon_momentum(
             s, {.grad = x, .momentum = bf({8}), .direction = y, .control = control, .rounding = {.first = -4}});
       }},
      {"normalize: a vector", [](Ops& o, Stream& s) { o.normalize(s, {.x = x, .norm = f64({1})}); }},
      {"normalize: norm in f32", [](Ops& o, Stream& s) { o.normalize(s, {.x = a, .norm = f32({1})}); }},
      {"normalize: margin 0", [](Ops& o, Stream& s) { o.normalize(s, {.x = a, .norm = f64({1}), .margin = 0}); }},
      {"muon_update: direction of another size",
       [](Ops& o, Stream& s) {
         o.muon_update(s, {.direction = column, .master = x, .weights = {}, .control = control});
       }},
      {"muon_update: weights in f32",
       [](Ops& o, Stream& s) { o.muon_update(s, {.direction = x, .master = y, .weights = z, .control = control}); }},
      {"muon_update: updates over the masters",
       [](Ops& o, Stream& s) {
         o.muon_update(s, {.direction = x, .master = y, .weights = {}, .control = control, .updates = y});
       }},
      {"sum_squares: bf16", [](Ops& o, Stream& s) { o.sum_squares(s, {.x = bf({8}), .sums = sums}); }},
      {"statistics: integers", [](Ops& o, Stream& s) { o.statistics(s, {.x = ids, .out = f64({kStatistics})}); }},
      {"statistics: another number of bins",
       [](Ops& o, Stream& s) {
         o.statistics(s, {.x = x, .out = f64({kStatistics}), .magnitudes = f64({kMagnitudeBins + 1})});
       }},
      {"statistics: divisor in f32",
       [](Ops& o, Stream& s) { o.statistics(s, {.x = x, .out = f64({kStatistics}), .divisor = f32({1})}); }},
      {"checksum: integers", [](Ops& o, Stream& s) { o.checksum(s, {.x = ids, .sum = i32({2})}); }},
      {"checksum: sum in f64", [](Ops& o, Stream& s) { o.checksum(s, {.x = x, .sum = f64({1})}); }},
      {"cast: sizes differ", [](Ops& o, Stream& s) { o.cast(s, {.src = x, .dst = column}); }},
      {"cast: accumulation into bf16",
       [](Ops& o, Stream& s) { o.cast(s, {.src = x, .dst = bf({8}), .write = Write::kAccumulate}); }},
      {"average: sizes differ", [](Ops& o, Stream& s) { o.average(s, {.x = x, .average = f32({7}), .weight = 1}); }},
      {"average: in bf16", [](Ops& o, Stream& s) { o.average(s, {.x = x, .average = bf({8}), .weight = 1}); }},
      {"average: weight above 1", [](Ops& o, Stream& s) { o.average(s, {.x = x, .average = y, .weight = 1.5}); }},
      {"fill: nothing to fill", [](Ops& o, Stream& s) { o.fill(s, {.x = {}, .value = 1}); }},
      {"random_normal: bf16", [](Ops& o, Stream& s) { o.random_normal(s, {.x = bf({8}), .seed = 1, .name = "x"}); }},
  };
}

}  // namespace

TEST_CASE("operations refuse arguments that break their contract, as bugs of ours") {
  TestBackend cpu;
  for (const Refusal& refusal : refusals()) {
    INFO(refusal.why);
    bool refused = false;
    try {
      refusal.call(cpu.ops(), *cpu.stream);
    } catch (const Error& error) {
      refused = error.kind() == Kind::kBug;
    }
    CHECK(refused);
  }
}

TEST_CASE("a refusal names the tensor, what it is and what it should be") {
  TestBackend cpu;
  const HostTensor a = f32({3, 4}), b = f32({5, 6}), c = f32({3, 6});
  CHECK_THROWS_WITH(cpu.ops().gemm(*cpu.stream, {.a = a, .b = b, .c = c}),
                    Catch::Contains("b is F32 (5, 6)") && Catch::Contains("(4, 6)"));
}

TEST_CASE("an empty workload needs no more workspace than a small one") {
  TestBackend cpu;
  const int64_t empty = cpu.ops().workspace_bytes({});
  CHECK(empty >= 0);
  CHECK(empty <= cpu.ops().workspace_bytes(TestBackend::small_workload()));
}

TEST_CASE("attention reads rows behind its tokens only on a GPU that may use cuDNN, in a plan made anywhere") {
  TestBackend cpu;
  CHECK(cpu.ops().rows_behind_attention() == 0);
  CHECK(plan_cpu_backend().ops->rows_behind_attention() == 0);
  const auto planned = [](AttentionKind kind) {
    RuntimeOptions options;
    options.attention = kind;
    return plan_cuda_backend(options).ops->rows_behind_attention();
  };
  CHECK(planned(AttentionKind::kAuto) == 128);
  CHECK(planned(AttentionKind::kCudnn) == 128);
  CHECK(planned(AttentionKind::kNative) == 0);
}

TEST_CASE("attention reads tables of documents only on a GPU that may use cuDNN, in bf16, in a plan made anywhere") {
  TestBackend cpu;
  const Workload run{.tokens = 16384, .max_length = 2000};
  CHECK(cpu.ops().document_table_entries(run) == 0);
  CHECK(plan_cpu_backend().ops->document_table_entries(run) == 0);
  const auto planned = [](AttentionKind kind, const Workload& workload) {
    RuntimeOptions options;
    options.attention = kind;
    return plan_cuda_backend(options).ops->document_table_entries(workload);
  };
  CHECK(planned(AttentionKind::kAuto, run) == 512 + 4);  // 64 documents a sequence of 16 tiles of 128 tokens
  CHECK(planned(AttentionKind::kCudnn, run) == 512 + 4);
  CHECK(planned(AttentionKind::kNative, run) == 0);
  CHECK(planned(AttentionKind::kAuto, {.tokens = 16384, .max_length = 2000, .compute = kF32}) == 0);
  CHECK(planned(AttentionKind::kAuto, {}) == 0);
}
