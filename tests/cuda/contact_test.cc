// The first test on a GPU (scripts/gpu_check.sh --only first), in seconds, at the 8B shape. It runs every operation
// once and requires finite results. It compares cuDNN's attention with our kernels, and puts NaN behind operands and
// documents for both. TOKAMAK_CONTACT=tiny: at a shape for the emulator, where all attention is by our kernels.
#include <numeric>
#include <optional>

#include "backend/gpu_sizes.h"
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
    tiny() ? Workload{128, 64, 384, {4, 1, 64}, 128} : Workload{8192, 4096, 128256, {32, 8, 128}, 8192};

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
HostTensor counting(int64_t count, int64_t below, int64_t first = 0) {
  Values values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>((first + static_cast<int64_t>(i)) % below);
  }
  return HostTensor(kI32, {count}, values);
}

void check_finite(const char* name, const Tensor& x) {
  const HostTensor found(kF64, {kStatistics});
  ops().statistics(stream(), {x.flat(), found});
  const Values values = found.values();
  INFO(name);
  CHECK(values[kNonFinite] == 0);
  CHECK(values[kSquares] > 0);  // the operation has written it
}

int64_t non_finite(const Tensor& x) {
  const HostTensor found(kF64, {kStatistics});
  ops().statistics(stream(), {x.flat(), found});
  return static_cast<int64_t>(found.values()[kNonFinite]);
}

// The greatest magnitude; inf where not all are finite.
double greatest(const Tensor& x) {
  const HostTensor found(kF64, {kStatistics});
  ops().statistics(stream(), {x.flat(), found});
  const Values values = found.values();
  if (values[kNonFinite] != 0) return std::numeric_limits<double>::infinity();
  return std::max(std::abs(values[kMin]), std::abs(values[kMax]));
}

// As max_relative_error(), on the device: the host would take half a minute. The product with -1 on the diagonal is
// exact, as each of its sums has one term.
Deviation apart(const Tensor& actual, const Tensor& expected) {
  const int64_t width = expected.dim(1);
  Values diagonal(static_cast<size_t>(width * width));
  for (int64_t i = 0; i < width; ++i) diagonal[static_cast<size_t>(i * width + i)] = -1;
  const HostTensor minus(expected.dtype(), {width, width}, diagonal), difference(kF32, expected.shape());
  ops().cast(stream(), {actual.flat(), difference.view().flat()});
  ops().gemm(stream(), {.a = expected, .b = minus, .c = difference, .write = Write::kAccumulate});
  return {greatest(difference) / std::max(greatest(expected), 1e-300)};
}

// Heads [first, first + count) of each token's `heads`.                        (N, heads D) -> (N count, D)
HostTensor heads_of(const Tensor& rows, int64_t heads, int64_t first, int64_t count) {
  const int64_t tokens = rows.dim(0), dim = rows.dim(1) / heads;
  Values ids;
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t h = first; h < first + count; ++h) ids.push_back(static_cast<double>(t * heads + h));
  }
  HostTensor chosen(rows.dtype(), {tokens * count, dim});
  ops().embedding(stream(), {HostTensor(kI32, {tokens * count}, ids), rows.reshape({tokens * heads, dim}), chosen});
  return chosen;
}

constexpr int64_t kRowsBehind = 128;

// A tensor with memory for kRowsBehind more rows, every byte of which is `behind`: 0xFF is NaN in each dtype.
struct Operand {
  Operand(DType dtype, const Shape& shape, char byte)
      : behind(byte), memory(dtype, {shape.count() + kRowsBehind * (shape.count() / shape[0])}) {
    write_bytes(memory, std::string(static_cast<size_t>(memory.view().bytes()), byte));
    view = memory.view().flat(0, shape.count()).reshape(shape);
  }
  Operand(const HostTensor& from, char byte) : Operand(from.dtype(), from.shape(), byte) {
    ops().cast(stream(), {from.view().flat(), view.flat()});
  }
  bool behind_is_unwritten() const {
    const std::string bytes = bytes_of(memory);
    return bytes.find_first_not_of(behind, static_cast<size_t>(view.bytes())) == std::string::npos;
  }

  char behind;
  HostTensor memory;
  Tensor view;
};

struct AttentionProblem {
  HeadLayout heads;
  std::vector<int64_t> lengths;

  int64_t tokens() const { return std::accumulate(lengths.begin(), lengths.end(), int64_t{0}); }
  std::string text() const {
    const bool equal = std::all_of(lengths.begin(), lengths.end(), [&](int64_t n) { return n == lengths[0]; });
    return equal ? str(lengths.size(), " x ", lengths[0]) : str(lengths.size(), " ragged documents");
  }
  HostTensor qkv() const { return normal({tokens(), heads.qkv_width()}, "qkv"); }
  HostTensor dout() const { return normal({tokens(), heads.q_width()}, "dout"); }
};

// Forward and backward of one implementation, in a workspace full of NaN.
class AttentionBy {
 public:
  AttentionBy(AttentionKind kind, const HeadLayout& heads, int64_t tokens) {
    RuntimeOptions options;
    options.attention = kind;
    backend_ = make_cuda_backend(options, 0);
    const Workload size{tokens, heads.q_width(), 1, heads, tokens};
    workspace_ = HostTensor(kF32, {backend_.ops->workspace_bytes(size) / 4 + 1});
    backend_.ops->bind_workspace(workspace_);
    if (const int64_t entries = backend_.ops->document_table_entries(size); entries > 0) {
      tables_ = HostTensor(kI32, {DocumentTables::kRows, entries});
    }
  }

  struct Results {
    Operand out, lse, dqkv;

    bool behind_is_unwritten() const {
      return out.behind_is_unwritten() && lse.behind_is_unwritten() && dqkv.behind_is_unwritten();
    }
    std::string bytes() const { return bytes_of(out.view) + bytes_of(lse.view) + bytes_of(dqkv.view); }
  };
  Results run(const AttentionProblem& p, const HostTensor& qkv, const HostTensor& dout, char behind) {
    const HeadLayout& heads = p.heads;
    const int64_t tokens = p.tokens(), longest = *std::max_element(p.lengths.begin(), p.lengths.end());
    Values bounds = {0};
    for (const int64_t length : p.lengths) bounds.push_back(bounds.back() + static_cast<double>(length));
    const HostTensor cu(kI32, {static_cast<int64_t>(bounds.size())}, bounds);
    const Operand in(qkv, behind), d(dout, behind);
    Results r{Operand(kBF16, {tokens, heads.q_width()}, behind), Operand(kF32, {heads.q_heads, tokens}, behind),
              Operand(kBF16, {tokens, heads.qkv_width()}, behind)};
    const float scale = heads.scale();
    if (tables_.count() > 0) backend_.ops->document_tables(stream(), {cu, tables_, heads});  // as in training
    fill_workspace();
    backend_.ops->attention(stream(), {in.view, cu, r.out.view, r.lse.view, heads, scale, longest, tables_});
    fill_workspace();
    backend_.ops->attention_backward(
        stream(), {in.view, cu, r.out.view, r.lse.view, d.view, r.dqkv.view, heads, scale, longest, tables_});
    stream().synchronize();  // before the operands are released
    return r;
  }

 private:
  void fill_workspace() {
    const Tensor scratch = workspace_.view().flat(kGpuGemmWorkspaceBytes / 4, workspace_.count());
    ops().fill(stream(), {scratch, std::numeric_limits<double>::quiet_NaN()});
  }

  Backend backend_;
  HostTensor workspace_, tables_;
};

// Nothing where there is no cuDNN. On the emulator: our own kernels.
std::optional<AttentionBy> attention_by_cudnn(const HeadLayout& heads, int64_t tokens) {
  try {
    return std::make_optional<AttentionBy>(tiny() ? AttentionKind::kAuto : AttentionKind::kCudnn, heads, tokens);
  } catch (const Error& error) {
    if (error.kind() != Kind::kDevice) throw;
    WARN(error.what());
    return std::nullopt;
  }
}

void tell_whether(const std::string& what, int64_t elements) {
  WARN(what << ": " << (elements > 0 ? "yes" : "no"));
  tell_measured(what, static_cast<double>(elements), "results that are not finite (0: no)");
}

}  // namespace

TEST_CASE("every operation once, finite", "[.][contact]") {
  const TestBackend backend(kSize);
  const int64_t n = kSize.tokens, c = kSize.hidden, inner = tiny() ? 96 : 14336;
  const HeadLayout& heads = kSize.heads;
  const HostTensor ids = counting(n, kSize.vocab), positions = counting(n, n),
                   angles = normal({n, heads.head_dim}, "a", kF32);
  const HostTensor table = normal({kSize.vocab, c}, "table", kBF16, 0.02), weight = ones(kBF16, {c});
  const HostTensor x(kBF16, {n, c}), y(kBF16, {n, c}), dx(kBF16, {n, c}), rstd(kF32, {n}), dweight(kF32, {c});

  ops().embedding(stream(), {ids, table, x});
  check_finite("embedding", x);
  ops().rmsnorm(stream(), {x, weight, y, rstd});
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
  const HostTensor tables(kI32, {DocumentTables::kRows, 4});
  ops().document_tables(stream(), {cu, tables, heads});
  ops().attention(stream(), {qkv, cu, out, lse, heads, heads.scale(), n, tables});
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
  ops().rmsnorm_backward(stream(), {y, x, weight, rstd, dx, dx, dweight});
  check_finite("rmsnorm_backward", dx);
  const HostTensor losses(kF32, {n}), sums(kF64, {kStepSums}), dtable(kF32, table.shape()),
      control(kF32, {kStepControls});
  // No target is the token itself: a row's logit with itself is so great at this width that the loss rounds to zero.
  const HostTensor targets = counting(n, kSize.vocab, 1);
  ops().linear_cross_entropy(stream(), {y, table, targets, losses, sums, x, dtable});
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
  const HostTensor direction(kBF16, table.shape()), norm(kF64, {1});
  ops().muon_momentum(stream(), {.grad = dtable.view().flat(),
                                 .momentum = m,
                                 .direction = direction.view().flat(),
                                 .control = control,
                                 .mu = 0.95});
  check_finite("muon_momentum", direction);
  ops().normalize(stream(), {.x = direction, .norm = norm});
  check_finite("normalize", direction);
  ops().muon_update(stream(), {.direction = direction.view().flat(),
                               .master = master,
                               .weights = table.view().flat(),
                               .control = control,
                               .rate = 1e-3,
                               .decay = 1e-4});
  check_finite("muon_update", master);
}

TEST_CASE("differences are measured on the device as on the host", "[.][contact]") {
  const TestBackend backend;
  const HostTensor all = normal({50, 3 * 64}, "all"), error = normal({100, 64}, "error", kBF16, 1e-2);
  const HostTensor expected = heads_of(all, 3, 1, 2);
  const Values rows = all.values();
  Values columns;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i % 192 >= 64) columns.push_back(rows[i]);
  }
  CHECK(expected.values() == columns);
  HostTensor actual(kBF16, expected.shape());
  for (size_t i = 0; i < columns.size(); ++i) columns[i] += error.values()[0] * static_cast<double>(i % 7);
  actual.set(columns);
  CHECK(apart(expected, expected).value == 0);
  CHECK(apart(actual, expected).value == Approx(max_relative_error(actual, expected.values()).value).epsilon(1e-6));
  columns[123] = std::numeric_limits<double>::quiet_NaN();
  actual.set(columns);
  CHECK(std::isinf(apart(actual, expected).value));
  CHECK(non_finite(actual) == 1);
}

TEST_CASE("cuDNN's attention is ours", "[.][contact]") {
  const TestBackend backend;
  const HeadLayout& heads = kSize.heads;
  const int64_t n = kSize.tokens, all_heads = heads.q_heads + 2 * heads.kv_heads;
  const std::vector<int64_t> ragged =
      tiny() ? std::vector<int64_t>{1, 3, 17, 2, 70, 5, 30} : std::vector<int64_t>{1, 63, 129, 1000, 2500, 4000, 499};
  AttentionBy native(AttentionKind::kNative, heads, n);
  std::optional<AttentionBy> cudnn = attention_by_cudnn(heads, n);
  if (!cudnn) return;
  std::vector<AttentionProblem> problems = {{heads, ragged}, {heads, {n}}};
  if (!tiny()) problems.push_back({heads, {n / 2, n / 2}});
  for (const AttentionProblem& p : problems) {
    REQUIRE(p.tokens() == n);
    const HostTensor qkv = p.qkv(), dout = p.dout();
    const AttentionBy::Results ours = native.run(p, qkv, dout, 0), theirs = cudnn->run(p, qkv, dout, 0);
    const auto check = [&](const char* part, const Deviation& error, double bound) {
      const std::string name = str(part, ", ", p.text());
      tell_measured("cuDNN against ours: " + name, error, "of the greatest");
      INFO(name);
      CHECK(error < bound);
      if (error.value == 0 && !tiny()) WARN(name << ": the same bits, so these are not cuDNN's (its log says why)");
    };
    const auto check_heads = [&](const char* part, const Operand& actual, const Operand& expected, int64_t in_all,
                                 int64_t first, int64_t count) {
      // cuDNN rounds dK and dV of each query head before it adds them.
      check(part, apart(heads_of(actual.view, in_all, first, count), heads_of(expected.view, in_all, first, count)),
            0.02);
    };
    check_heads("dq", theirs.dqkv, ours.dqkv, all_heads, 0, heads.q_heads);
    check_heads("dk", theirs.dqkv, ours.dqkv, all_heads, heads.q_heads, heads.kv_heads);
    check_heads("dv", theirs.dqkv, ours.dqkv, all_heads, heads.q_heads + heads.kv_heads, heads.kv_heads);
    check_heads("out", theirs.out, ours.out, heads.q_heads, 0, heads.q_heads);
    const HostTensor lse = HostTensor::copy_of(theirs.lse.view);
    check("lse", max_relative_error(lse, HostTensor::copy_of(ours.lse.view).values()), 1e-3);
  }
}

TEST_CASE("attention ignores NaN behind its operands and documents", "[.][contact]") {
  const TestBackend backend;
  const HeadLayout heads = tiny() ? kSize.heads : HeadLayout{8, 2, 128};
  const std::vector<int64_t> ragged = tiny() ? std::vector<int64_t>{3, 66, 30} : std::vector<int64_t>{1, 63, 129, 30};
  const int64_t one = tiny() ? 70 : 200;
  constexpr char kZero = 0, kNaN = '\xFF';
  AttentionBy native(AttentionKind::kNative, heads, 256);
  std::optional<AttentionBy> cudnn;
  if (!tiny()) cudnn = attention_by_cudnn(heads, 256);
  for (AttentionBy* by : {&native, cudnn ? &*cudnn : nullptr}) {
    if (by == nullptr) continue;
    const bool ours = by == &native;
    for (const AttentionProblem& p : {AttentionProblem{heads, ragged}, {heads, {one}}, {heads, {one / 2, one / 2}}}) {
      INFO(p.text() << (ours ? ", our kernels" : ", cuDNN"));
      const HostTensor qkv = p.qkv(), dout = p.dout();
      const AttentionBy::Results clean = by->run(p, qkv, dout, kZero), poisoned = by->run(p, qkv, dout, kNaN);
      if (!ours && clean.bytes() == native.run(p, qkv, dout, kZero).bytes()) {
        WARN(p.text() << ": the same bits as our kernels', so not by cuDNN (its log says why)");
        continue;
      }
      CHECK(clean.behind_is_unwritten());
      CHECK(poisoned.behind_is_unwritten());
      const auto harmed = [](const AttentionBy::Results& r) {
        return non_finite(r.out.view) + non_finite(r.dqkv.view);
      };
      CHECK(harmed(clean) == 0);  // as in training: zeros behind, NaN elsewhere in the workspace
      if (ours) {
        CHECK((poisoned.bytes() == clean.bytes()));
      } else {
        tell_whether("cuDNN reads rows behind its operands, " + p.text(), harmed(poisoned));
      }
    }
    const AttentionProblem p{heads, {40, 30, 70}};
    const HostTensor qkv = p.qkv(), dout = p.dout();
    HostTensor poisoned = qkv;
    ops().fill(stream(), {poisoned.view().rows(40, 70), std::numeric_limits<double>::quiet_NaN()});
    const AttentionBy::Results clean = by->run(p, qkv, dout, kZero), r = by->run(p, poisoned, dout, kZero);
    int64_t harmed = 0;
    for (const auto& [begin, end] : {std::pair{0, 40}, {70, 140}}) {
      harmed += non_finite(r.out.view.rows(begin, end)) + non_finite(r.dqkv.view.rows(begin, end));
      if (!ours) continue;
      CHECK((bytes_of(r.out.view.rows(begin, end)) == bytes_of(clean.out.view.rows(begin, end))));
      CHECK((bytes_of(r.dqkv.view.rows(begin, end)) == bytes_of(clean.dqkv.view.rows(begin, end))));
    }
    CHECK(non_finite(r.out.view.rows(40, 70)) == 30 * heads.q_width());
    if (!ours) tell_whether("cuDNN reads rows past a document's end", harmed);
  }
}
