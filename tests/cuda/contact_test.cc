// The first test on a GPU (scripts/gpu_check.sh --only contact), in seconds, at the 8B shape: every operation once,
// with finite results; and cuDNN's attention against our kernels. TOKAMAK_CONTACT=tiny: at a shape for the emulator.
#include "backend/support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

constexpr DType kBF16 = DType::kBF16, kF32 = DType::kF32, kF64 = DType::kF64, kI32 = DType::kI32;

bool tiny() {
  const char* size = std::getenv("TOKAMAK_CONTACT");
  return size != nullptr && std::string(size) == "tiny";
}
const Workload kSize =
    tiny() ? Workload{128, 64, 96, 384, {4, 1, 64}, 128} : Workload{8192, 4096, 14336, 128256, {32, 8, 128}, 8192};

Ops& ops() { return *under_test().backend.ops; }
Stream& stream() { return *under_test().stream; }

// Made on the device: the host would take longer than everything else.
HostTensor normal(Shape shape, const char* name, DType dtype = kBF16, double std = 1) {
  HostTensor x(kF32, {shape.count()}), rounded(dtype, shape);
  ops().random_normal(stream(), {x, 1, name, 0, 0, std});
  ops().cast(stream(), {x, rounded.view().flat()});
  return rounded;
}
HostTensor ones(DType dtype, Shape shape) {
  HostTensor x(dtype, shape);
  ops().fill(stream(), {x, 1});
  return x;
}
HostTensor counting(int64_t count, int64_t below) {
  Values values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % static_cast<size_t>(below));
  return HostTensor(kI32, {count}, values);
}

void check_finite(const char* name, const Tensor& x) {
  const HostTensor found(kF64, {kStatistics});
  ops().statistics(stream(), {x.flat(), found});
  const Values values = found.values();
  INFO(name);
  CHECK(values[kNonFinite] == 0);
  CHECK(values[kSquares] > 0);  // somebody has written it
}

// Of query, key and value heads, apart.
std::vector<Values> columns(const Values& rows, const HeadLayout& heads) {
  std::vector<Values> parts(3);
  const auto width = static_cast<size_t>(heads.qkv_width()), q = static_cast<size_t>(heads.q_width()),
             kv = static_cast<size_t>(heads.kv_width());
  for (size_t i = 0; i < rows.size(); ++i) parts[i % width < q ? 0 : i % width < q + kv ? 1 : 2].push_back(rows[i]);
  return parts;
}

std::vector<Values> attention_by(AttentionKind kind, int64_t documents, const HostTensor& qkv, const HostTensor& dout) {
  RuntimeOptions options;
  options.attention = kind;
  const Backend backend = make_cuda_backend(options, 0);
  const HostTensor workspace(kF32, {backend.ops->workspace_bytes(kSize) / 4 + 1});
  backend.ops->bind_workspace(workspace);
  const HeadLayout& heads = kSize.heads;
  const int64_t tokens = kSize.tokens, length = tokens / documents;
  Values bounds;
  for (int64_t d = 0; d <= documents; ++d) bounds.push_back(static_cast<double>(d * length));
  const HostTensor cu(kI32, {documents + 1}, bounds), out(kBF16, {tokens, heads.q_width()}),
      lse(kF32, {heads.q_heads, tokens}), dqkv(kBF16, {tokens, heads.qkv_width()});
  backend.ops->attention(stream(), {qkv, cu, out, lse, heads, heads.scale(), length});
  backend.ops->attention_backward(stream(), {qkv, cu, out, lse, dout, dqkv, heads, heads.scale(), length});
  std::vector<Values> results = columns(dqkv.values(), heads);
  results.push_back(out.values());
  results.push_back(lse.values());
  return results;
}

}  // namespace

TEST_CASE("every operation once, finite", "[.][contact]") {
  const TestBackend backend(kSize);
  const int64_t n = kSize.tokens, c = kSize.hidden, inner = kSize.intermediate;
  const HeadLayout& heads = kSize.heads;
  const HostTensor ids = counting(n, kSize.vocab), positions = counting(n, n),
                   angles = normal({n, heads.head_dim}, "a", kF32);
  const HostTensor table = normal({kSize.vocab, c}, "table", kBF16, 0.02), weight = ones(kBF16, {c});
  const HostTensor x(kBF16, {n, c}), y(kBF16, {n, c}), sum(kBF16, {n, c}), rstd(kF32, {n}), dweight(kF32, {c});

  ops().embedding(stream(), {ids, table, x});
  check_finite("embedding", x);
  ops().rmsnorm(stream(), {x, x, weight, sum, y, rstd});
  check_finite("rmsnorm", y);
  const HostTensor qkv(kBF16, {n, heads.qkv_width()}), out(kBF16, {n, heads.q_width()}), lse(kF32, {heads.q_heads, n});
  ops().gemm(stream(),
             {.a = y, .b = normal({heads.qkv_width(), c}, "w", kBF16, 0.02), .c = qkv, .trans_b = Transpose::kYes});
  check_finite("gemm", qkv);
  const HostTensor head_weight = ones(kBF16, {heads.head_dim}), head_rstd(kF32, {n * (heads.q_heads + heads.kv_heads)}),
                   dq_weight(kF32, {heads.head_dim}), dk_weight(kF32, {heads.head_dim});
  const HostTensor before = qkv;
  ops().qk_norm(stream(), {before, head_weight, head_weight, qkv, head_rstd, heads});
  check_finite("qk_norm", qkv);
  ops().rope(stream(), {qkv, positions, angles, heads});
  check_finite("rope", qkv);
  const HostTensor cu(kI32, {2}, {0, static_cast<double>(n)}), dqkv(kBF16, qkv.shape()),
      dout = normal(out.shape(), "d");
  ops().attention(stream(), {qkv, cu, out, lse, heads, heads.scale(), n});
  check_finite("attention", out);
  ops().attention_backward(stream(), {qkv, cu, out, lse, dout, dqkv, heads, heads.scale(), n});
  check_finite("attention_backward", dqkv);
  ops().qk_norm_backward(stream(), {dqkv, before, head_weight, head_weight, head_rstd, dq_weight, dk_weight, heads});
  check_finite("qk_norm_backward", dqkv);
  {
    const HostTensor gate_up = normal({n, 2 * inner}, "g"), h(kBF16, {n, inner}), dh = normal({n, inner}, "dh");
    ops().swiglu(stream(), {gate_up, h});
    check_finite("swiglu", h);
    ops().swiglu_backward(stream(), {gate_up, dh, gate_up});
    check_finite("swiglu_backward", gate_up);
    const HostTensor dw(kF32, {inner, c});
    ops().gemm(stream(), {.a = h, .b = y, .c = dw, .trans_a = Transpose::kYes, .write = Write::kAccumulate});
    check_finite("gemm of a weight's gradient", dw);
    const HostTensor sums(kF32, {2 * inner});
    ops().column_sums(stream(), {gate_up, sums});
    check_finite("column_sums", sums);
  }
  ops().rmsnorm_backward(stream(), {y, sum, weight, rstd, x, x, dweight});
  check_finite("rmsnorm_backward", x);
  const HostTensor losses(kF32, {n}), sums(kF64, {kStepSums}), dtable(kF32, table.shape()),
      control(kF32, {kStepControls});
  ops().linear_cross_entropy(stream(), {y, table, ids, losses, sums, x, dtable});
  check_finite("linear_cross_entropy", losses);
  ops().embedding_backward(stream(), {ids, x, dtable});
  check_finite("embedding_backward", dtable);
  ops().sum_squares(stream(), {dtable.view().flat(), sums});
  ops().control_step(stream(), {sums, control, 1.0f});
  check_finite("control_step", control);
  const HostTensor master = normal({dtable.count()}, "m", kF32), m(kF32, master.shape()), v(kF32, master.shape());
  ops().adamw(stream(), {.master = master,
                         .exp_avg = m,
                         .exp_avg_sq = v,
                         .grad = dtable.view().flat(),
                         .weights = table.view().flat(),
                         .control = control,
                         .groups = {{master.count(), 0.1}},
                         .lr = 1e-4,
                         .beta1 = 0.9,
                         .beta2 = 0.95,
                         .eps = 1e-8});
  check_finite("adamw", master);
  check_finite("adamw's rounded weights", table);
}

TEST_CASE("cuDNN's attention is ours", "[.][contact]") {
  const HostTensor qkv = normal({kSize.tokens, kSize.heads.qkv_width()}, "qkv"),
                   dout = normal({kSize.tokens, kSize.heads.q_width()}, "dout");
  for (const int64_t documents : {1, 2}) {
    const std::vector<Values> ours = attention_by(AttentionKind::kNative, documents, qkv, dout);
    std::vector<Values> theirs;
    try {
      theirs = attention_by(tiny() ? AttentionKind::kAuto : AttentionKind::kCudnn, documents, qkv, dout);
    } catch (const Error& error) {
      if (error.kind() != Kind::kDevice) throw;
      WARN(error.what());
      return;
    }
    const char* const names[] = {"dq", "dk", "dv", "out", "lse"};
    for (size_t i = 0; i < ours.size(); ++i) {
      const Deviation apart = max_relative_error(theirs[i], ours[i]);
      const std::string name = str(names[i], ", ", documents, " x ", kSize.tokens / documents);
      tell_measured("cuDNN against ours: " + name, apart, "of the greatest");
      INFO(name);
      CHECK(apart < (i == 4 ? 1e-3 : 0.02));  // cuDNN rounds dK and dV of each query head before it adds them
    }
  }
}
