// The public method of each operation checks the arguments as ops.h states them, notifies the observers and calls the
// backend. check() returns the FLOPs of the operation's GEMMs.
#include "backend/ops.h"

#include <algorithm>

#include "backend/observer.h"
#include "backend/op_checks.h"

namespace tokamak {

namespace {

double check(const Gemm& args) {
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
    TOKAMAK_CHECK(args.write == Write::kOverwrite && k > 0, "a bias takes a product, without accumulation; a is ",
                  args.a.text());
  }
  TOKAMAK_CHECK(args.alpha == 1 || (args.write == Write::kOverwrite && !args.bias && k > 0), "alpha ", args.alpha,
                " takes a product, without accumulation and bias; a is ", args.a.text());
  TOKAMAK_CHECK(args.residual_scale == 1 || (args.residual_scale != 0 && args.residual && !args.bias && k > 0),
                "residual_scale ", args.residual_scale, " takes a product and a residual, no bias, and is not 0; a is ",
                args.a.text());
  return 2 * product({m, n, k});
}

double check(const Embedding& args) {
  expect_act({"table", args.table}, 2);
  const int64_t n = args.ids.count();
  expect({"ids", args.ids}, DType::kI32, {n});
  expect({"out", args.out}, args.table.dtype(), {n, args.table.dim(1)});
  return 0;
}

double check(const EmbeddingBackward& args) {
  expect_act({"dout", args.dout}, 2);
  expect_rank({"dtable", args.dtable}, 2);
  expect({"ids", args.ids}, DType::kI32, {args.dout.dim(0)});
  expect({"dtable", args.dtable}, DType::kF32, {args.dtable.dim(0), args.dout.dim(1)});
  return 0;
}

double check(const RmsNorm& args) {
  expect_act({"x", args.x}, 2);
  const DType act = args.x.dtype();
  expect({"weight", args.weight}, act, {args.x.dim(1)});
  expect({"y", args.y}, act, args.x.shape());
  expect({"rstd", args.rstd}, DType::kF32, {args.x.dim(0)});
  if (args.onto) expect({"onto", args.onto}, act, args.x.shape());
  return 0;
}

double check(const RmsNormBackward& args) {
  expect_act({"dy", args.dy}, 2);
  const DType act = args.dy.dtype();
  const Shape& shape = args.dy.shape();
  expect({"x", args.x}, act, shape);
  expect({"weight", args.weight}, act, {shape[1]});
  expect({"rstd", args.rstd}, DType::kF32, {shape[0]});
  if (args.dresidual) expect({"dresidual", args.dresidual}, act, shape);
  expect({"dx", args.dx}, act, shape);
  expect({"dweight", args.dweight}, DType::kF32, {shape[1]});
  if (args.y) expect({"y", args.y}, act, shape);
  return 0;
}

double check(const ColumnSums& args) {
  expect_act({"x", args.x}, 2);
  expect({"sums", args.sums}, DType::kF32, {args.x.dim(1)});
  return 0;
}

double check(const QkNorm& args) {
  expect_qk_norm(args, {"qkv", args.qkv});
  expect({"out", args.out}, args.qkv.dtype(), args.qkv.shape());
  return 0;
}

double check(const QkNormBackward& args) {
  expect_qk_norm(args, {"dqkv", args.dqkv});
  expect({"dq_weight", args.dq_weight}, DType::kF32, args.q_weight.shape());
  expect({"dk_weight", args.dk_weight}, DType::kF32, args.k_weight.shape());
  return 0;
}

double check(const Rope& args) {
  expect_heads(args.heads);
  expect_act({"qkv", args.qkv}, 2);
  expect_shape({"qkv", args.qkv}, {args.qkv.dim(0), args.heads.qkv_width()});
  expect({"positions", args.positions}, DType::kI32, {args.qkv.dim(0)});
  expect_rank({"table", args.table}, 2);
  expect({"table", args.table}, DType::kF32, {args.table.dim(0), args.heads.head_dim});
  return 0;
}

double check(const DocumentTables& args) {
  expect_heads(args.heads);
  expect_tables(args.tables, args.cu_seqlens);
  return 0;
}

double check(const Attention& args) {
  expect_attention(args);
  return 4 * attention_products(args);
}

double check(const AttentionBackward& args) {
  expect_attention(args);
  expect({"dout", args.dout}, args.qkv.dtype(), args.out.shape());
  expect({"dqkv", args.dqkv}, args.qkv.dtype(), args.qkv.shape());
  return 10 * attention_products(args);
}

double check(const CacheAppend& args) {
  expect_cached(args);
  return 0;
}

double check(const CachedAttention& args) {
  expect_cached(args);
  const int64_t n = args.qkv.dim(0);
  expect({"out", args.out}, args.qkv.dtype(), {n, args.heads.q_width()});
  TOKAMAK_CHECK(args.window >= 0 && args.cap >= 0, "window ", args.window, ", cap ", args.cap);
  const int64_t rows = args.cache.dim(2);
  const bool is_ring = args.window > 0 && rows % kCacheTile == 0 && args.window - 1 + args.max_new <= rows;
  TOKAMAK_CHECK(n == 0 || (0 < args.max_new && args.max_new <= args.max_length && (args.max_length <= rows || is_ring)),
                "max_new ", args.max_new, ", max_length ", args.max_length, ", a cache of ", rows, ", window ",
                args.window);
  const int64_t seen = args.window > 0 ? std::min(args.window, args.max_length) : args.max_length;
  return 4 * product({n, seen, args.heads.q_width()});
}

double check(const SwiGlu& args) {
  expect_act({"out", args.out}, 2);
  expect({"gate_up", args.gate_up}, args.out.dtype(), {args.out.dim(0), 2 * args.out.dim(1)});
  return 0;
}

double check(const SwiGluBackward& args) {
  expect_act({"dout", args.dout}, 2);
  const Shape wide = {args.dout.dim(0), 2 * args.dout.dim(1)};
  expect({"gate_up", args.gate_up}, args.dout.dtype(), wide);
  expect({"dgate_up", args.dgate_up}, args.dout.dtype(), wide);
  if (args.out) expect({"out", args.out}, args.dout.dtype(), args.dout.shape());
  return 0;
}

double check(const SoftCap& args) {
  expect_act({"x", args.x}, 1);
  TOKAMAK_CHECK(args.cap > 0, "cap ", args.cap);
  return 0;
}

double check(const LinearCrossEntropy& args) {
  expect_act({"hidden", args.hidden}, 2);
  expect_rank({"weight", args.weight}, 2);
  const int64_t n = args.hidden.dim(0), c = args.hidden.dim(1), v = args.weight.dim(0);
  expect({"weight", args.weight}, args.hidden.dtype(), {v, c});
  expect({"targets", args.targets}, DType::kI32, {n});
  expect({"token_loss", args.token_loss}, DType::kF32, {n});
  expect({"sums", args.sums}, DType::kF64, {kStepSums});
  TOKAMAK_CHECK(args.cap >= 0, "cap ", args.cap);
  TOKAMAK_CHECK(static_cast<bool>(args.dhidden) == static_cast<bool>(args.dweight),
                "dhidden and dweight are given together or not at all");
  if (args.dhidden) {
    expect({"dhidden", args.dhidden}, args.hidden.dtype(), {n, c});
    expect({"dweight", args.dweight}, DType::kF32, {v, c});
  }
  if (args.greedy) {
    expect({"greedy", args.greedy}, DType::kF32, {n});
    TOKAMAK_CHECK(!args.dhidden, "greedy and gradients in one pass");
  }
  return (args.dhidden ? 6 : 2) * product({n, v, c});
}

double check(const ControlStep& args) {
  expect({"sums", args.sums}, DType::kF64, {kStepSums});
  expect({"control", args.control}, DType::kF32, {kStepControls});
  if (args.unit_sums) expect({"unit_sums", args.unit_sums}, DType::kF64, {args.unit_sums.dim(0), kStepSums});
  return 0;
}

double check(const ClipUnit& args) {
  expect({"x", args.x}, DType::kF32, {args.x.count()});
  expect({"unit_sums", args.unit_sums}, DType::kF64, {kStepSums});
  expect({"sums", args.sums}, DType::kF64, {kStepSums});
  TOKAMAK_CHECK(args.max_norm > 0, "max_norm ", args.max_norm);
  return 0;
}

double check(const AdamW& args) {
  const Shape shape = {args.master.count()};
  expect({"grad", args.grad}, DType::kF32, shape);
  if (args.weights) expect({"weights", args.weights}, DType::kBF16, shape);
  expect({"control", args.control}, DType::kF32, {kStepControls});
  expect({"master", args.master}, DType::kF32, shape);
  expect_act({"exp_avg", args.exp_avg}, 1);
  expect_shape({"exp_avg", args.exp_avg}, shape);
  expect({"exp_avg_sq", args.exp_avg_sq}, args.exp_avg.dtype(), shape);
  expect_rounding(args.rounding);
  if (args.updates) expect({"updates", args.updates}, DType::kF32, shape);
  TOKAMAK_CHECK(1 <= args.groups.size() && args.groups.size() <= AdamW::kMostGroups, args.groups.size(), " groups");
  int64_t end = 0;
  for (const AdamW::Group& group : args.groups) {
    TOKAMAK_CHECK(group.end >= end, "a group ends at ", group.end, ", the one before it at ", end);
    end = group.end;
  }
  TOKAMAK_CHECK(end == args.master.count(), "the groups end at ", end, ", master is ", args.master.text());
  return 0;
}

double check(const MuonMomentum& args) {
  const Shape shape = {args.grad.count()};
  expect({"grad", args.grad}, DType::kF32, shape);
  expect_act({"momentum", args.momentum}, 1);
  expect_shape({"momentum", args.momentum}, shape);
  expect_act({"direction", args.direction}, 1);
  expect_shape({"direction", args.direction}, shape);
  expect({"control", args.control}, DType::kF32, {kStepControls});
  expect_rounding(args.rounding);
  return 0;
}

double check(const Normalize& args) {
  expect_act({"x", args.x}, 2);
  expect({"norm", args.norm}, DType::kF64, {1});
  TOKAMAK_CHECK(args.margin > 0, "margin ", args.margin);
  return 0;
}

double check(const MuonUpdate& args) {
  const Shape shape = {args.master.count()};
  expect_act({"direction", args.direction}, 1);
  expect_shape({"direction", args.direction}, shape);
  expect({"master", args.master}, DType::kF32, shape);
  if (args.weights) expect({"weights", args.weights}, DType::kBF16, shape);
  expect({"control", args.control}, DType::kF32, {kStepControls});
  if (args.updates) expect({"updates", args.updates}, DType::kF32, shape);
  return 0;
}

double check(const SumSquares& args) {
  expect({"x", args.x}, DType::kF32, {args.x.count()});
  expect({"sums", args.sums}, DType::kF64, {kStepSums});
  return 0;
}

double check(const Statistics& args) {
  expect_act({"x", args.x}, 1);
  expect({"out", args.out}, DType::kF64, {kStatistics});
  if (args.magnitudes) expect({"magnitudes", args.magnitudes}, DType::kF64, {kMagnitudeBins});
  if (args.divisor) expect({"divisor", args.divisor}, DType::kF64, {1});
  return 0;
}

double check(const Checksum& args) {
  expect_act({"x", args.x}, 1);
  expect({"sum", args.sum}, DType::kI32, {2});
  return 0;
}

double check(const Cast& args) {
  expect_act({"src", args.src}, 1);
  expect_act({"dst", args.dst}, 1);
  expect_shape({"dst", args.dst}, args.src.shape());
  TOKAMAK_CHECK(args.write == Write::kOverwrite || args.dst.dtype() == DType::kF32, "accumulation into ",
                args.dst.text());
  return 0;
}

double check(const Average& args) {
  expect({"x", args.x}, DType::kF32, {args.x.count()});
  expect({"average", args.average}, DType::kF32, {args.x.count()});
  TOKAMAK_CHECK(args.weight >= 0 && args.weight <= 1, "weight ", args.weight);
  return 0;
}

double check(const ZeroNonFinite& args) {
  expect({"x", args.x}, DType::kF32, {args.x.count()});
  return 0;
}

double check(const Fill& args) {
  TOKAMAK_CHECK(args.x || args.x.count() == 0, "x is missing");
  return 0;
}

double check(const RandomNormal& args) {
  expect({"x", args.x}, DType::kF32, {args.x.count()});
  TOKAMAK_CHECK(args.first >= 0, "first ", args.first);
  return 0;
}

// No output may overlap another operand, except for the aliases that the contract allows.
void expect_apart(const Operands& operands) {
  for (const Operand& output : operands) {
    if (output.access == Access::kRead) continue;
    for (const Operand& other : operands) {
      if (&other == &output || !overlap(*output.tensor, *other.tensor)) continue;
      const bool same = output.tensor->data() == other.tensor->data();
      TOKAMAK_CHECK(same && (output.may_be(other) || other.may_be(output)), output.name, " ", output.tensor->text(),
                    " overlaps ", other.name, " ", other.tensor->text());
    }
  }
}

template <class Args>
const char* label_of(const Args&) {
  return "";
}
const char* label_of(const Gemm& args) { return args.label; }

}  // namespace

#define TOKAMAK_DEFINE_OP(op, Args)                                                                                 \
  void Ops::op(Stream& stream, const Args& args) {                                                                  \
    const double flops = check(args);                                                                               \
    expect_apart(operands_of(args));                                                                                \
    const auto call = [&] {                                                                                         \
      return Call{                                                                                                  \
          .name = #op, .label = label_of(args), .flops = flops, .operands = operands_of(args), .arguments = &args}; \
    };                                                                                                              \
    observed(stream, call, [&] {                                                                                    \
      if (!stream.has_own_thread()) return do_##op(stream, args);                                                   \
      stream.run_on_host([this, &stream, args] { do_##op(stream, args); });                                         \
    });                                                                                                             \
  }
TOKAMAK_OPS(TOKAMAK_DEFINE_OP)
#undef TOKAMAK_DEFINE_OP

}  // namespace tokamak
