// Normalisation of queries and keys against the formula in float64, and its gradients against finite differences.
#include "base/strings.h"
#include "support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

constexpr double kEps = 1e-5;

struct Problem {
  int64_t tokens;
  HeadLayout heads;
  DType act;
  HeadNorm over = HeadNorm::kEach;
  float offset = 0;  // of the weights
};

// Head sizes: less than one 16-byte vector, one, as many as a GPU's warp holds in registers, more, and too many for
// registers. Numbers of tokens that no number of blocks divides.
const std::vector<Problem> kProblems = {{45, {6, 2, 10}, DType::kF32},
                                        {45, {6, 2, 10}, DType::kBF16},
                                        {600, {3, 3, 8}, DType::kF32},
                                        {301, {4, 1, 64}, DType::kBF16},
                                        {77, {8, 4, 128}, DType::kF32},
                                        {77, {8, 4, 128}, DType::kBF16},
                                        {33, {5, 5, 136}, DType::kBF16},
                                        {19, {2, 1, 266}, DType::kF32},
                                        {5, {2, 2, 520}, DType::kBF16},
                                        {9, {2, 1, 1032}, DType::kF32},
                                        {45, {6, 2, 10}, DType::kF32, HeadNorm::kTogether},
                                        {301, {4, 1, 64}, DType::kBF16, HeadNorm::kTogether},
                                        {77, {8, 4, 128}, DType::kBF16, HeadNorm::kTogether},
                                        {600, {3, 3, 8}, DType::kF32, HeadNorm::kTogether},
                                        {77, {8, 4, 128}, DType::kBF16, HeadNorm::kEach, 1}};

Workload largest() {
  Workload w = TestBackend::small_workload();
  w.heads = {8, 4, 1032};
  w.head_norm = HeadNorm::kTogether;  // enough for each head, too
  return w;
}

struct Inputs {
  explicit Inputs(const Problem& p)
      : qkv(random_tensor(p.act, {p.tokens, p.heads.qkv_width()}, "qkv", 3.0)),
        q_weight(random_tensor(p.act, {width(p, p.heads.q_width())}, "q_weight")),
        k_weight(random_tensor(p.act, {width(p, p.heads.kv_width())}, "k_weight")),
        dout(random_tensor(p.act, {p.tokens, p.heads.qkv_width()}, "dout")),
        dq_weight(random_tensor(DType::kF32, {width(p, p.heads.q_width())}, "dq_weight")),
        dk_weight(random_tensor(DType::kF32, {width(p, p.heads.kv_width())}, "dk_weight")) {}
  static int64_t width(const Problem& p, int64_t all) { return p.over == HeadNorm::kEach ? p.heads.head_dim : all; }
  HostTensor qkv, q_weight, k_weight, dout, dq_weight, dk_weight;
};

// Calls visit(first element, place in rstd, whether it is of queries) for each row that is normalised. Rows are as wide
// as the weights.
template <class Visit>
void for_each_row(size_t tokens, const Problem& p, const Visit& visit) {
  const auto width = static_cast<size_t>(p.heads.qkv_width()), keys_at = static_cast<size_t>(p.heads.q_width());
  const bool each = p.over == HeadNorm::kEach;
  const auto d = static_cast<size_t>(p.heads.head_dim);  // of a row, if a token has more than one
  const auto hq = static_cast<size_t>(each ? p.heads.q_heads : 1),
             hkv = static_cast<size_t>(each ? p.heads.kv_heads : 1);
  for (size_t n = 0; n < tokens; ++n) {
    for (size_t h = 0; h < hq; ++h) visit(n * width + h * d, n * hq + h, true);
    for (size_t h = 0; h < hkv; ++h) visit(n * width + keys_at + h * d, tokens * hq + n * hkv + h, false);
  }
}

struct Reference {
  Values out, rstd;
};
Reference reference(const Values& qkv, const Values& q_weight, const Values& k_weight, const Problem& p,
                    double eps = kEps) {
  const size_t tokens = qkv.size() / static_cast<size_t>(p.heads.qkv_width());
  const int64_t rows = p.over == HeadNorm::kEach ? p.heads.q_heads + p.heads.kv_heads : 2;
  Reference r{qkv, Values(tokens * static_cast<size_t>(rows))};
  for_each_row(tokens, p, [&](size_t at, size_t place, bool query) {
    const size_t d = (query ? q_weight : k_weight).size();
    double mean = 0;
    for (size_t i = 0; i < d; ++i) mean += qkv[at + i] * qkv[at + i] / static_cast<double>(d);
    r.rstd[place] = 1 / std::sqrt(mean + eps);
    for (size_t i = 0; i < d; ++i)
      r.out[at + i] = qkv[at + i] * r.rstd[place] * (p.offset + (query ? q_weight : k_weight)[i]);
  });
  return r;
}

struct Gradients {
  Values dqkv, dq_weight, dk_weight;
};
Gradients gradients(const Inputs& in, const Problem& p, const Values& rstd) {
  const Values x = in.qkv.values(), dy = in.dout.values(), wq = in.q_weight.values(), wk = in.k_weight.values();
  Gradients g{dy, in.dq_weight.values(), in.dk_weight.values()};
  for_each_row(static_cast<size_t>(p.tokens), p, [&](size_t at, size_t place, bool query) {
    const Values& w = query ? wq : wk;
    const size_t d = w.size();
    Values& dw = query ? g.dq_weight : g.dk_weight;
    const double r = rstd[place];
    double mean = 0;
    for (size_t i = 0; i < d; ++i) mean += dy[at + i] * (p.offset + w[i]) * x[at + i] / static_cast<double>(d);
    for (size_t i = 0; i < d; ++i) {
      g.dqkv[at + i] = r * (dy[at + i] * (p.offset + w[i]) - x[at + i] * r * r * mean);
      dw[i] += dy[at + i] * x[at + i] * r;
    }
  });
  return g;
}

HostTensor rstd_of(const Inputs& in, const Problem& p) {
  const Values rstd = reference(in.qkv.values(), in.q_weight.values(), in.k_weight.values(), p).rstd;
  return HostTensor(DType::kF32, {static_cast<int64_t>(rstd.size())}, rstd);
}

std::string text(const Problem& p) {
  return str(p.tokens, " tokens, ", p.heads.q_heads, " + ", p.heads.kv_heads, " heads of ", p.heads.head_dim,
             p.over == HeadNorm::kEach ? ", each" : ", together");
}

}  // namespace

TEST_CASE("qk_norm normalises queries and keys, each or all heads with their weight, and copies values") {
  TestBackend cpu(largest());
  for (const Problem& p : kProblems) {
    INFO(text(p));
    const Inputs in(p);
    const Reference r = reference(in.qkv.values(), in.q_weight.values(), in.k_weight.values(), p);
    HostTensor out(p.act, in.qkv.shape()), rstd(DType::kF32, {static_cast<int64_t>(r.rstd.size())});
    cpu.ops().qk_norm(*cpu.stream, {in.qkv, in.q_weight, in.k_weight, out, rstd, p.heads, 1e-5f, p.over, p.offset});
    CHECK(max_relative_error(rstd, r.rstd) < 1e-6);
    CHECK(max_error_before_rounding(out, r.out) < 1e-6);

    HostTensor in_place = in.qkv, rstd2(DType::kF32, rstd.shape());
    cpu.ops().qk_norm(*cpu.stream,
                      {in_place, in.q_weight, in.k_weight, in_place, rstd2, p.heads, 1e-5f, p.over, p.offset});
    CHECK((in_place.bytes() == out.bytes() && rstd2.bytes() == rstd.bytes()));
  }
}

TEST_CASE("qk_norm's eps keeps a head of zeros finite") {
  TestBackend cpu;
  const HeadLayout heads{1, 1, 8};
  const HostTensor qkv(DType::kF32, {2, 24}), weight(DType::kF32, {8}, Values(8, 2.0));
  HostTensor out(DType::kF32, {2, 24}), rstd(DType::kF32, {4});
  cpu.ops().qk_norm(*cpu.stream, {qkv, weight, weight, out, rstd, heads, 0.25f});
  CHECK(rstd.values() == Values(4, 2.0));
  CHECK(max_abs(out.values()) == 0);
}

TEST_CASE("qk_norm accepts tensors at any alignment") {
  TestBackend cpu;
  const HeadLayout heads{2, 1, 16};
  const Problem p{45, heads, DType::kBF16};
  const Inputs in(p);
  const HostTensor rstd_before = rstd_of(in, p);
  const Reference expected = reference(in.qkv.values(), in.q_weight.values(), in.k_weight.values(), p);
  const Gradients gradient = gradients(in, p, rstd_before.values());
  enum { kQkv, kQWeight, kKWeight, kOut, kDqkv, kTensors };
  for (int moved = 0; moved < kTensors; ++moved) {
    INFO("tensor " << moved);
    std::vector<HostTensor> memory;
    const auto place = [&](int which, const HostTensor& tensor) {
      const int64_t at = which == moved ? 1 : 0;
      const Tensor view = memory.emplace_back(DType::kBF16, tokamak::Shape{tensor.count() + at}).view();
      const Tensor placed = view.flat(at, at + tensor.count()).reshape(tensor.shape());
      write_bytes(placed, tensor.bytes());
      return placed;
    };
    const Tensor qkv = place(kQkv, in.qkv), q_weight = place(kQWeight, in.q_weight),
                 k_weight = place(kKWeight, in.k_weight), out = place(kOut, in.qkv), dqkv = place(kDqkv, in.dout);
    HostTensor rstd(DType::kF32, rstd_before.shape()), dq_weight = in.dq_weight, dk_weight = in.dk_weight;
    cpu.ops().qk_norm(*cpu.stream, {qkv, q_weight, k_weight, out, rstd, heads});
    cpu.ops().qk_norm_backward(*cpu.stream, {dqkv, qkv, q_weight, k_weight, rstd_before, dq_weight, dk_weight, heads});
    CHECK(max_error_before_rounding(HostTensor::copy_of(out), expected.out) < 1e-6);
    CHECK(max_error_before_rounding(HostTensor::copy_of(dqkv), gradient.dqkv) < 1e-6);
    CHECK(max_relative_error(dq_weight, gradient.dq_weight) < 1e-6);
    CHECK(max_relative_error(dk_weight, gradient.dk_weight) < 1e-6);
  }
}

TEST_CASE("qk_norm accepts no tokens") {
  TestBackend cpu;
  const HeadLayout heads{2, 1, 16};
  const Inputs in({0, heads, DType::kBF16});
  HostTensor out = in.qkv, dqkv = in.dout, dq_weight = in.dq_weight, dk_weight = in.dk_weight;
  const HostTensor rstd(DType::kF32, {0});
  cpu.ops().qk_norm(*cpu.stream, {in.qkv, in.q_weight, in.k_weight, out, rstd, heads});
  cpu.ops().qk_norm_backward(*cpu.stream, {dqkv, in.qkv, in.q_weight, in.k_weight, rstd, dq_weight, dk_weight, heads});
  CHECK((dq_weight.bytes() == in.dq_weight.bytes() && dk_weight.bytes() == in.dk_weight.bytes()));
}

TEST_CASE("qk_norm_backward is the formula, rounded once, accumulates the weights' gradients and leaves values alone") {
  TestBackend cpu(largest());
  for (const Problem& p : kProblems) {
    INFO(text(p));
    const Inputs in(p);
    const HostTensor rstd = rstd_of(in, p);
    HostTensor dqkv = in.dout, dq_weight = in.dq_weight, dk_weight = in.dk_weight;
    cpu.ops().qk_norm_backward(
        *cpu.stream, {dqkv, in.qkv, in.q_weight, in.k_weight, rstd, dq_weight, dk_weight, p.heads, p.over, p.offset});
    const Gradients expected = gradients(in, p, rstd.values());
    CHECK(max_error_before_rounding(dqkv, expected.dqkv) < 1e-6);
    CHECK(max_relative_error(dq_weight, expected.dq_weight) < 1e-6);
    CHECK(max_relative_error(dk_weight, expected.dk_weight) < 1e-6);
  }
}

TEST_CASE("qk_norm_backward is the gradient of qk_norm") {
  TestBackend cpu;
  for (const HeadNorm over : {HeadNorm::kEach, HeadNorm::kTogether}) {
    const Problem p{3, {2, 1, 6}, DType::kF32, over};
    const double eps = 0.5;  // large enough to change the result
    const Inputs in(p);
    const Values qkv = in.qkv.values(), wq = in.q_weight.values(), wk = in.k_weight.values(), dout = in.dout.values();
    const Values rstd = reference(qkv, wq, wk, p, eps).rstd;
    HostTensor dqkv = in.dout, dq_weight(DType::kF32, in.q_weight.shape()), dk_weight(DType::kF32, in.k_weight.shape());
    cpu.ops().qk_norm_backward(*cpu.stream, {dqkv, in.qkv, in.q_weight, in.k_weight,
                                             HostTensor(DType::kF32, {static_cast<int64_t>(rstd.size())}, rstd),
                                             dq_weight, dk_weight, p.heads, over});
    const auto of_qkv = [&](const Values& x) { return dot(reference(x, wq, wk, p, eps).out, dout); };
    const auto of_wq = [&](const Values& w) { return dot(reference(qkv, w, wk, p, eps).out, dout); };
    const auto of_wk = [&](const Values& w) { return dot(reference(qkv, wq, w, p, eps).out, dout); };
    CHECK(max_relative_error(dqkv, finite_difference(of_qkv, qkv)) < 1e-6);
    CHECK(max_relative_error(dq_weight, finite_difference(of_wq, wq)) < 1e-6);
    CHECK(max_relative_error(dk_weight, finite_difference(of_wk, wk)) < 1e-6);
  }
}

TEST_CASE("qk_norm gives the same bits for any number of threads", "[threads]") {
  TestBackend cpu(largest());
  for (const DType act : {DType::kF32, DType::kBF16}) {
    const HeadLayout heads{4, 2, 24};
    const Problem p{2100, heads, act};
    const Inputs in(p);
    const HostTensor rstd_before = rstd_of(in, p);
    require_thread_invariance([&] {
      HostTensor out = in.qkv, rstd(DType::kF32, rstd_before.shape());
      HostTensor dqkv = in.dout, dq_weight = in.dq_weight, dk_weight = in.dk_weight;
      cpu.ops().qk_norm(*cpu.stream, {in.qkv, in.q_weight, in.k_weight, out, rstd, heads});
      cpu.ops().qk_norm_backward(*cpu.stream,
                                 {dqkv, in.qkv, in.q_weight, in.k_weight, rstd, dq_weight, dk_weight, heads});
      return out.bytes() + rstd.bytes() + dqkv.bytes() + dq_weight.bytes() + dk_weight.bytes();
    });
  }
}
