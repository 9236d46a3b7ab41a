// Each operation once: checks of its arguments as ops.h states them, the profiler's range, the backend's method.
#include "backend/ops.h"

#include "backend/op_checks.h"

namespace tokamak {

void Ops::gemm(Stream& stream, const Gemm& args) {
  expect_act({"a", args.a}, 2);
  expect_act({"b", args.b}, 2);
  expect_act({"c", args.c}, 2);
  const bool ta = args.trans_a == Transpose::kYes, tb = args.trans_b == Transpose::kYes;
  const int64_t m = args.a.dim(ta ? 1 : 0), k = args.a.dim(ta ? 0 : 1), n = args.b.dim(tb ? 0 : 1);
  expect({"b", args.b}, args.a.dtype(), tb ? Shape{n, k} : Shape{k, n});
  expect_shape({"c", args.c}, {m, n});
  TOKAMAK_CHECK(args.c.dtype() == DType::kF32 || args.c.dtype() == args.a.dtype(), "c is ", args.c.text(), ", a is ",
                args.a.text());
  if (args.residual) expect({"residual", args.residual}, args.c.dtype(), args.c.shape());
  TOKAMAK_CHECK(args.write == Write::kOverwrite || (args.c.dtype() == DType::kF32 && !args.residual),
                "accumulation takes an F32 output and no residual; c is ", args.c.text());
  if (args.bias) {
    expect({"bias", args.bias}, args.c.dtype(), {n});
    TOKAMAK_CHECK(args.write == Write::kOverwrite && !args.residual && k > 0,
                  "a bias takes a product, without accumulation and residual; a is ", args.a.text());
  }
  expect_apart({"c", args.c}, {{"a", args.a}, {"b", args.b}, {"bias", args.bias}});
  expect_apart_or_same({"c", args.c}, {{"residual", args.residual}});
  timed(profile_, stream, "gemm", 2 * product({m, n, k}), [&] { do_gemm(stream, args); });
}

void Ops::embedding(Stream& stream, const Embedding& args) {
  expect_act({"table", args.table}, 2);
  const int64_t n = args.ids.count();
  expect({"ids", args.ids}, DType::kI32, {n});
  expect({"out", args.out}, args.table.dtype(), {n, args.table.dim(1)});
  expect_apart({"out", args.out}, {{"ids", args.ids}, {"table", args.table}});
  timed(profile_, stream, "embedding", 0, [&] { do_embedding(stream, args); });
}

void Ops::embedding_backward(Stream& stream, const EmbeddingBackward& args) {
  expect_act({"dout", args.dout}, 2);
  expect_rank({"dtable", args.dtable}, 2);
  expect({"ids", args.ids}, DType::kI32, {args.dout.dim(0)});
  expect({"dtable", args.dtable}, DType::kF32, {args.dtable.dim(0), args.dout.dim(1)});
  expect_apart({"dtable", args.dtable}, {{"ids", args.ids}, {"dout", args.dout}});
  timed(profile_, stream, "embedding_backward", 0, [&] { do_embedding_backward(stream, args); });
}

void Ops::rmsnorm(Stream& stream, const RmsNorm& args) {
  expect_act({"x", args.x}, 2);
  const DType act = args.x.dtype();
  expect({"weight", args.weight}, act, {args.x.dim(1)});
  expect({"y", args.y}, act, args.x.shape());
  expect({"rstd", args.rstd}, DType::kF32, {args.x.dim(0)});
  TOKAMAK_CHECK(static_cast<bool>(args.sum) == static_cast<bool>(args.residual), "sum is given with residual only");
  if (args.residual) {
    expect({"residual", args.residual}, act, args.x.shape());
    expect({"sum", args.sum}, act, args.x.shape());
  }
  const std::initializer_list<Named> inputs = {{"x", args.x}, {"residual", args.residual}};
  expect_apart_or_same({"sum", args.sum}, inputs);
  expect_apart({"sum", args.sum}, {{"weight", args.weight}});
  for (const Named& output : {Named{"y", args.y}, Named{"rstd", args.rstd}}) {
    expect_apart(output, inputs);
    expect_apart(output, {{"weight", args.weight}, {"sum", args.sum}});
  }
  expect_apart({"y", args.y}, {{"rstd", args.rstd}});
  timed(profile_, stream, "rmsnorm", 0, [&] { do_rmsnorm(stream, args); });
}

void Ops::rmsnorm_backward(Stream& stream, const RmsNormBackward& args) {
  expect_act({"dy", args.dy}, 2);
  const DType act = args.dy.dtype();
  const Shape& shape = args.dy.shape();
  expect({"x", args.x}, act, shape);
  expect({"weight", args.weight}, act, {shape[1]});
  expect({"rstd", args.rstd}, DType::kF32, {shape[0]});
  if (args.dresidual) expect({"dresidual", args.dresidual}, act, shape);
  expect({"dx", args.dx}, act, shape);
  expect({"dweight", args.dweight}, DType::kF32, {shape[1]});
  expect_apart_or_same({"dx", args.dx}, {{"dy", args.dy}, {"dresidual", args.dresidual}});
  expect_apart({"dx", args.dx},
               {{"x", args.x}, {"weight", args.weight}, {"rstd", args.rstd}, {"dweight", args.dweight}});
  expect_apart(
      {"dweight", args.dweight},
      {{"dy", args.dy}, {"x", args.x}, {"weight", args.weight}, {"rstd", args.rstd}, {"dresidual", args.dresidual}});
  if (args.y) {
    expect({"y", args.y}, act, shape);
    expect_apart_or_same({"y", args.y}, {{"dy", args.dy}});
    expect_apart({"y", args.y}, {{"x", args.x},
                                 {"weight", args.weight},
                                 {"rstd", args.rstd},
                                 {"dresidual", args.dresidual},
                                 {"dx", args.dx},
                                 {"dweight", args.dweight}});
  }
  timed(profile_, stream, "rmsnorm_backward", 0, [&] { do_rmsnorm_backward(stream, args); });
}

void Ops::column_sums(Stream& stream, const ColumnSums& args) {
  expect_act({"x", args.x}, 2);
  expect({"sums", args.sums}, DType::kF32, {args.x.dim(1)});
  expect_apart({"sums", args.sums}, {{"x", args.x}});
  timed(profile_, stream, "column_sums", 0, [&] { do_column_sums(stream, args); });
}

void Ops::qk_norm(Stream& stream, const QkNorm& args) {
  expect_heads(args.heads);
  expect_act({"qkv", args.qkv}, 2);
  const DType act = args.qkv.dtype();
  const int64_t n = args.qkv.dim(0);
  expect_shape({"qkv", args.qkv}, {n, args.heads.qkv_width()});
  expect({"q_weight", args.q_weight}, act, {args.heads.head_dim});
  expect({"k_weight", args.k_weight}, act, {args.heads.head_dim});
  expect({"out", args.out}, act, args.qkv.shape());
  expect({"rstd", args.rstd}, DType::kF32, {n * (args.heads.q_heads + args.heads.kv_heads)});
  expect_apart_or_same({"out", args.out}, {{"qkv", args.qkv}});
  for (const Named& output : {Named{"out", args.out}, Named{"rstd", args.rstd}}) {
    expect_apart(output, {{"q_weight", args.q_weight}, {"k_weight", args.k_weight}});
  }
  expect_apart({"rstd", args.rstd}, {{"qkv", args.qkv}, {"out", args.out}});
  timed(profile_, stream, "qk_norm", 0, [&] { do_qk_norm(stream, args); });
}

void Ops::qk_norm_backward(Stream& stream, const QkNormBackward& args) {
  expect_heads(args.heads);
  expect_act({"dqkv", args.dqkv}, 2);
  const DType act = args.dqkv.dtype();
  const int64_t n = args.dqkv.dim(0), head_dim = args.heads.head_dim;
  expect_shape({"dqkv", args.dqkv}, {n, args.heads.qkv_width()});
  expect({"qkv", args.qkv}, act, args.dqkv.shape());
  expect({"q_weight", args.q_weight}, act, {head_dim});
  expect({"k_weight", args.k_weight}, act, {head_dim});
  expect({"rstd", args.rstd}, DType::kF32, {n * (args.heads.q_heads + args.heads.kv_heads)});
  expect({"dq_weight", args.dq_weight}, DType::kF32, {head_dim});
  expect({"dk_weight", args.dk_weight}, DType::kF32, {head_dim});
  const Named outputs[] = {{"dqkv", args.dqkv}, {"dq_weight", args.dq_weight}, {"dk_weight", args.dk_weight}};
  for (const Named& output : outputs) {
    expect_apart(output,
                 {{"qkv", args.qkv}, {"q_weight", args.q_weight}, {"k_weight", args.k_weight}, {"rstd", args.rstd}});
    for (const Named& other : outputs) {
      if (&other != &output) expect_apart(output, {other});
    }
  }
  timed(profile_, stream, "qk_norm_backward", 0, [&] { do_qk_norm_backward(stream, args); });
}

void Ops::rope(Stream& stream, const Rope& args) {
  expect_heads(args.heads);
  expect_act({"qkv", args.qkv}, 2);
  expect_shape({"qkv", args.qkv}, {args.qkv.dim(0), args.heads.qkv_width()});
  expect({"positions", args.positions}, DType::kI32, {args.qkv.dim(0)});
  expect_rank({"table", args.table}, 2);
  expect({"table", args.table}, DType::kF32, {args.table.dim(0), args.heads.head_dim});
  expect_apart({"qkv", args.qkv}, {{"positions", args.positions}, {"table", args.table}});
  timed(profile_, stream, "rope", 0, [&] { do_rope(stream, args); });
}

void Ops::attention(Stream& stream, const Attention& args) {
  const HeadLayout& heads = args.heads;
  expect_heads(heads);
  expect_act({"qkv", args.qkv}, 2);
  const int64_t n = args.qkv.dim(0);
  expect_shape({"qkv", args.qkv}, {n, heads.qkv_width()});
  expect({"cu_seqlens", args.cu_seqlens}, DType::kI32, {args.cu_seqlens.count()});
  TOKAMAK_CHECK(args.cu_seqlens.count() >= 1, "cu_seqlens is ", args.cu_seqlens.text());
  expect({"out", args.out}, args.qkv.dtype(), {n, heads.q_width()});
  expect({"lse", args.lse}, DType::kF32, {heads.q_heads, n});
  TOKAMAK_CHECK(n == 0 || args.max_length > 0, "max_length ", args.max_length);
  for (const Named& output : {Named{"out", args.out}, Named{"lse", args.lse}}) {
    expect_apart(output, {{"qkv", args.qkv}, {"cu_seqlens", args.cu_seqlens}});
  }
  expect_apart({"out", args.out}, {{"lse", args.lse}});
  const double flops = 4 * causal_pairs(n, args.max_length) * product({heads.q_heads, heads.head_dim});
  timed(profile_, stream, "attention", flops, [&] { do_attention(stream, args); });
}

void Ops::attention_backward(Stream& stream, const AttentionBackward& args) {
  const HeadLayout& heads = args.heads;
  expect_heads(heads);
  expect_act({"qkv", args.qkv}, 2);
  const DType act = args.qkv.dtype();
  const int64_t n = args.qkv.dim(0);
  expect_shape({"qkv", args.qkv}, {n, heads.qkv_width()});
  expect({"cu_seqlens", args.cu_seqlens}, DType::kI32, {args.cu_seqlens.count()});
  TOKAMAK_CHECK(args.cu_seqlens.count() >= 1, "cu_seqlens is ", args.cu_seqlens.text());
  expect({"out", args.out}, act, {n, heads.q_width()});
  expect({"lse", args.lse}, DType::kF32, {heads.q_heads, n});
  expect({"dout", args.dout}, act, {n, heads.q_width()});
  expect({"dqkv", args.dqkv}, act, {n, heads.qkv_width()});
  TOKAMAK_CHECK(n == 0 || args.max_length > 0, "max_length ", args.max_length);
  expect_apart(
      {"dqkv", args.dqkv},
      {{"qkv", args.qkv}, {"cu_seqlens", args.cu_seqlens}, {"out", args.out}, {"lse", args.lse}, {"dout", args.dout}});
  const double flops = 10 * causal_pairs(n, args.max_length) * product({heads.q_heads, heads.head_dim});
  timed(profile_, stream, "attention_backward", flops, [&] { do_attention_backward(stream, args); });
}

void Ops::cache_append(Stream& stream, const CacheAppend& args) {
  expect_cached(args);
  expect_apart({"cache", args.cache}, {{"qkv", args.qkv},
                                       {"cu_seqlens", args.sequences.cu_seqlens},
                                       {"slots", args.sequences.slots},
                                       {"cached", args.sequences.cached}});
  timed(profile_, stream, "cache_append", 0, [&] { do_cache_append(stream, args); });
}

void Ops::cached_attention(Stream& stream, const CachedAttention& args) {
  expect_cached(args);
  const int64_t n = args.qkv.dim(0);
  expect({"out", args.out}, args.qkv.dtype(), {n, args.heads.q_width()});
  expect_apart({"out", args.out}, {{"qkv", args.qkv},
                                   {"cache", args.cache},
                                   {"cu_seqlens", args.sequences.cu_seqlens},
                                   {"slots", args.sequences.slots},
                                   {"cached", args.sequences.cached}});
  TOKAMAK_CHECK(n == 0 || (0 < args.max_new && args.max_new <= args.max_length && args.max_length <= args.cache.dim(2)),
                "max_new ", args.max_new, ", max_length ", args.max_length, ", a cache of ", args.cache.dim(2));
  const double flops = 4 * product({n, args.max_length, args.heads.q_heads, args.heads.head_dim});
  timed(profile_, stream, "cached_attention", flops, [&] { do_cached_attention(stream, args); });
}

void Ops::swiglu(Stream& stream, const SwiGlu& args) {
  expect_act({"out", args.out}, 2);
  expect({"gate_up", args.gate_up}, args.out.dtype(), {args.out.dim(0), 2 * args.out.dim(1)});
  expect_apart({"out", args.out}, {{"gate_up", args.gate_up}});
  timed(profile_, stream, "swiglu", 0, [&] { do_swiglu(stream, args); });
}

void Ops::swiglu_backward(Stream& stream, const SwiGluBackward& args) {
  expect_act({"dout", args.dout}, 2);
  const Shape wide = {args.dout.dim(0), 2 * args.dout.dim(1)};
  expect({"gate_up", args.gate_up}, args.dout.dtype(), wide);
  expect({"dgate_up", args.dgate_up}, args.dout.dtype(), wide);
  expect_apart_or_same({"dgate_up", args.dgate_up}, {{"gate_up", args.gate_up}});
  expect_apart({"dgate_up", args.dgate_up}, {{"dout", args.dout}});
  if (args.out) {
    expect({"out", args.out}, args.dout.dtype(), args.dout.shape());
    expect_apart_or_same({"out", args.out}, {{"dout", args.dout}});
    expect_apart({"out", args.out}, {{"gate_up", args.gate_up}, {"dgate_up", args.dgate_up}});
  }
  timed(profile_, stream, "swiglu_backward", 0, [&] { do_swiglu_backward(stream, args); });
}

void Ops::linear_cross_entropy(Stream& stream, const LinearCrossEntropy& args) {
  expect_act({"hidden", args.hidden}, 2);
  expect_rank({"weight", args.weight}, 2);
  const int64_t n = args.hidden.dim(0), c = args.hidden.dim(1), v = args.weight.dim(0);
  expect({"weight", args.weight}, args.hidden.dtype(), {v, c});
  expect({"targets", args.targets}, DType::kI32, {n});
  expect({"token_loss", args.token_loss}, DType::kF32, {n});
  expect({"sums", args.sums}, DType::kF64, {kStepSums});
  TOKAMAK_CHECK(static_cast<bool>(args.dhidden) == static_cast<bool>(args.dweight),
                "dhidden and dweight are given together or not at all");
  if (args.dhidden) {
    expect({"dhidden", args.dhidden}, args.hidden.dtype(), {n, c});
    expect({"dweight", args.dweight}, DType::kF32, {v, c});
  }
  const Named outputs[] = {
      {"token_loss", args.token_loss}, {"sums", args.sums}, {"dhidden", args.dhidden}, {"dweight", args.dweight}};
  for (const Named& output : outputs) {
    expect_apart(output, {{"hidden", args.hidden}, {"weight", args.weight}, {"targets", args.targets}});
    for (const Named& other : outputs) {
      if (&other != &output) expect_apart(output, {other});
    }
  }
  timed(profile_, stream, "linear_cross_entropy", (args.dhidden ? 6 : 2) * product({n, v, c}),
        [&] { do_linear_cross_entropy(stream, args); });
}

void Ops::control_step(Stream& stream, const ControlStep& args) {
  expect({"sums", args.sums}, DType::kF64, {kStepSums});
  expect({"control", args.control}, DType::kF32, {kStepControls});
  expect_apart({"control", args.control}, {{"sums", args.sums}});
  timed(profile_, stream, "control_step", 0, [&] { do_control_step(stream, args); });
}

void Ops::adamw(Stream& stream, const AdamW& args) {
  const Shape shape = {args.master.count()};
  const Named states[] = {{"master", args.master}, {"exp_avg", args.exp_avg}, {"exp_avg_sq", args.exp_avg_sq}};
  expect({"grad", args.grad}, DType::kF32, shape);
  if (args.weights) expect({"weights", args.weights}, DType::kBF16, shape);
  expect({"control", args.control}, DType::kF32, {kStepControls});
  for (const Named& state : states) {
    expect(state, DType::kF32, shape);
    expect_apart(state, {{"grad", args.grad}, {"weights", args.weights}, {"control", args.control}});
    for (const Named& other : states) {
      if (&other != &state) expect_apart(state, {other});
    }
  }
  expect_apart({"weights", args.weights}, {{"grad", args.grad}, {"control", args.control}});
  TOKAMAK_CHECK(1 <= args.pieces.size() && args.pieces.size() <= AdamW::kMostPieces, args.pieces.size(), " pieces");
  int64_t end = 0;
  for (const AdamW::Piece& piece : args.pieces) {
    TOKAMAK_CHECK(piece.end >= end, "a piece ends at ", piece.end, ", the one before it at ", end);
    end = piece.end;
  }
  TOKAMAK_CHECK(end == args.master.count(), "the pieces end at ", end, ", master is ", args.master.text());
  timed(profile_, stream, "adamw", 0, [&] { do_adamw(stream, args); });
}

void Ops::sum_squares(Stream& stream, const SumSquares& args) {
  expect({"x", args.x}, DType::kF32, {args.x.count()});
  expect({"sums", args.sums}, DType::kF64, {kStepSums});
  expect_apart({"sums", args.sums}, {{"x", args.x}});
  timed(profile_, stream, "sum_squares", 0, [&] { do_sum_squares(stream, args); });
}

void Ops::statistics(Stream& stream, const Statistics& args) {
  expect_act({"x", args.x}, 1);
  expect({"out", args.out}, DType::kF64, {kStatistics});
  expect_apart({"out", args.out}, {{"x", args.x}});
  timed(profile_, stream, "statistics", 0, [&] { do_statistics(stream, args); });
}

void Ops::cast(Stream& stream, const Cast& args) {
  expect_act({"src", args.src}, 1);
  expect_act({"dst", args.dst}, 1);
  expect_shape({"dst", args.dst}, args.src.shape());
  TOKAMAK_CHECK(args.write == Write::kOverwrite || args.dst.dtype() == DType::kF32, "accumulation into ",
                args.dst.text());
  expect_apart({"dst", args.dst}, {{"src", args.src}});
  timed(profile_, stream, "cast", 0, [&] { do_cast(stream, args); });
}

void Ops::fill(Stream& stream, const Fill& args) {
  TOKAMAK_CHECK(args.x || args.x.count() == 0, "x is missing");
  timed(profile_, stream, "fill", 0, [&] { do_fill(stream, args); });
}

void Ops::random_normal(Stream& stream, const RandomNormal& args) {
  expect({"x", args.x}, DType::kF32, {args.x.count()});
  TOKAMAK_CHECK(args.first >= 0, "first ", args.first);
  timed(profile_, stream, "random_normal", 0, [&] { do_random_normal(stream, args); });
}

}  // namespace tokamak
