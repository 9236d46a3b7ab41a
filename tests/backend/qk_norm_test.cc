// Normalisation of query and key heads against the formula in float64, and its gradients against finite differences.
#include "support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

constexpr double kEps = 1e-5;

struct Problem {
  int64_t tokens;
  HeadLayout heads;
  DType act;
};

// Head sizes: less than one 16-byte vector, one, as many as a GPU's warp holds in registers, more, and too many for
// registers. Numbers of tokens that no number of blocks divides.
const std::vector<Problem> kProblems = {{45, {6, 2, 10}, DType::kF32},   {45, {6, 2, 10}, DType::kBF16},
                                        {600, {3, 3, 8}, DType::kF32},   {301, {4, 1, 64}, DType::kBF16},
                                        {77, {8, 4, 128}, DType::kF32},  {77, {8, 4, 128}, DType::kBF16},
                                        {33, {5, 5, 136}, DType::kBF16}, {19, {2, 1, 266}, DType::kF32},
                                        {5, {2, 2, 520}, DType::kBF16},  {9, {2, 1, 1032}, DType::kF32}};

Workload largest() {
  Workload w = TestBackend::small_workload();
  w.heads = {8, 4, 1032};
  return w;
}

struct Inputs {
  Inputs(int64_t tokens, const HeadLayout& heads, DType act)
      : qkv(random_tensor(act, {tokens, heads.qkv_width()}, "qkv", 3.0)),
        q_weight(random_tensor(act, {heads.head_dim}, "q_weight")),
        k_weight(random_tensor(act, {heads.head_dim}, "k_weight")),
        dout(random_tensor(act, {tokens, heads.qkv_width()}, "dout")),
        dq_weight(random_tensor(DType::kF32, {heads.head_dim}, "dq_weight")),
        dk_weight(random_tensor(DType::kF32, {heads.head_dim}, "dk_weight")) {}
  explicit Inputs(const Problem& p) : Inputs(p.tokens, p.heads, p.act) {}
  HostTensor qkv, q_weight, k_weight, dout, dq_weight, dk_weight;
};

// Calls visit(first element of the head, place in rstd, whether it is a query head) for each head that is normalised.
template <class Visit>
void for_each_head(size_t tokens, const HeadLayout& heads, const Visit& visit) {
  const auto d = static_cast<size_t>(heads.head_dim), width = static_cast<size_t>(heads.qkv_width());
  const auto hq = static_cast<size_t>(heads.q_heads), hkv = static_cast<size_t>(heads.kv_heads);
  for (size_t n = 0; n < tokens; ++n) {
    for (size_t h = 0; h < hq; ++h) visit(n * width + h * d, n * hq + h, true);
    for (size_t h = 0; h < hkv; ++h) visit(n * width + (hq + h) * d, tokens * hq + n * hkv + h, false);
  }
}

struct Reference {
  Values out, rstd;
};
Reference reference(const Values& qkv, const Values& q_weight, const Values& k_weight, const HeadLayout& heads,
                    double eps = kEps) {
  const size_t tokens = qkv.size() / static_cast<size_t>(heads.qkv_width()), d = q_weight.size();
  Reference r{qkv, Values(tokens * static_cast<size_t>(heads.q_heads + heads.kv_heads))};
  for_each_head(tokens, heads, [&](size_t at, size_t place, bool query) {
    double mean = 0;
    for (size_t i = 0; i < d; ++i) mean += qkv[at + i] * qkv[at + i] / static_cast<double>(d);
    r.rstd[place] = 1 / std::sqrt(mean + eps);
    for (size_t i = 0; i < d; ++i) r.out[at + i] = qkv[at + i] * r.rstd[place] * (query ? q_weight : k_weight)[i];
  });
  return r;
}

struct Gradients {
  Values dqkv, dq_weight, dk_weight;
};
Gradients gradients(const Inputs& in, const HeadLayout& heads, const Values& rstd) {
  const Values x = in.qkv.values(), dy = in.dout.values(), wq = in.q_weight.values(), wk = in.k_weight.values();
  const size_t tokens = x.size() / static_cast<size_t>(heads.qkv_width()), d = wq.size();
  Gradients g{dy, in.dq_weight.values(), in.dk_weight.values()};
  for_each_head(tokens, heads, [&](size_t at, size_t place, bool query) {
    const Values& w = query ? wq : wk;
    Values& dw = query ? g.dq_weight : g.dk_weight;
    const double r = rstd[place];
    double mean = 0;
    for (size_t i = 0; i < d; ++i) mean += dy[at + i] * w[i] * x[at + i] / static_cast<double>(d);
    for (size_t i = 0; i < d; ++i) {
      g.dqkv[at + i] = r * (dy[at + i] * w[i] - x[at + i] * r * r * mean);
      dw[i] += dy[at + i] * x[at + i] * r;
    }
  });
  return g;
}

HostTensor rstd_of(const Inputs& in, const HeadLayout& heads) {
  const Values rstd = reference(in.qkv.values(), in.q_weight.values(), in.k_weight.values(), heads).rstd;
  return HostTensor(DType::kF32, {static_cast<int64_t>(rstd.size())}, rstd);
}

}  // namespace

TEST_CASE("qk_norm normalises query and key heads, each with its weight, and copies values") {
  TestBackend cpu(largest());
  for (const Problem& p : kProblems) {
    INFO(p.tokens << " tokens, " << p.heads.q_heads << " + " << p.heads.kv_heads << " heads of " << p.heads.head_dim);
    const Inputs in(p);
    HostTensor out(p.act, in.qkv.shape()), rstd(DType::kF32, {p.tokens * (p.heads.q_heads + p.heads.kv_heads)});
    cpu.ops().qk_norm(*cpu.stream, {in.qkv, in.q_weight, in.k_weight, out, rstd, p.heads});
    const Reference r = reference(in.qkv.values(), in.q_weight.values(), in.k_weight.values(), p.heads);
    CHECK(max_relative_error(rstd, r.rstd) < 1e-6);
    CHECK(max_error_before_rounding(out, r.out) < 1e-6);

    HostTensor in_place = in.qkv, rstd2(DType::kF32, rstd.shape());
    cpu.ops().qk_norm(*cpu.stream, {in_place, in.q_weight, in.k_weight, in_place, rstd2, p.heads});
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
  const Inputs in(45, heads, DType::kBF16);
  const HostTensor rstd_before = rstd_of(in, heads);
  const Reference expected = reference(in.qkv.values(), in.q_weight.values(), in.k_weight.values(), heads);
  const Gradients gradient = gradients(in, heads, rstd_before.values());
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
  const Inputs in(0, heads, DType::kBF16);
  HostTensor out = in.qkv, dqkv = in.dout, dq_weight = in.dq_weight, dk_weight = in.dk_weight;
  const HostTensor rstd(DType::kF32, {0});
  cpu.ops().qk_norm(*cpu.stream, {in.qkv, in.q_weight, in.k_weight, out, rstd, heads});
  cpu.ops().qk_norm_backward(*cpu.stream, {dqkv, in.qkv, in.q_weight, in.k_weight, rstd, dq_weight, dk_weight, heads});
  CHECK((dq_weight.bytes() == in.dq_weight.bytes() && dk_weight.bytes() == in.dk_weight.bytes()));
}

TEST_CASE("qk_norm_backward is the formula, rounded once, accumulates the weights' gradients and leaves values alone") {
  TestBackend cpu(largest());
  for (const Problem& p : kProblems) {
    INFO(p.tokens << " tokens, " << p.heads.q_heads << " + " << p.heads.kv_heads << " heads of " << p.heads.head_dim);
    const Inputs in(p);
    const HostTensor rstd = rstd_of(in, p.heads);
    HostTensor dqkv = in.dout, dq_weight = in.dq_weight, dk_weight = in.dk_weight;
    cpu.ops().qk_norm_backward(*cpu.stream,
                               {dqkv, in.qkv, in.q_weight, in.k_weight, rstd, dq_weight, dk_weight, p.heads});
    const Gradients expected = gradients(in, p.heads, rstd.values());
    CHECK(max_error_before_rounding(dqkv, expected.dqkv) < 1e-6);
    CHECK(max_relative_error(dq_weight, expected.dq_weight) < 1e-6);
    CHECK(max_relative_error(dk_weight, expected.dk_weight) < 1e-6);
  }
}

TEST_CASE("qk_norm_backward is the gradient of qk_norm") {
  TestBackend cpu;
  const HeadLayout heads{2, 1, 6};
  const double eps = 0.5;  // large enough to change the result
  const Inputs in(3, heads, DType::kF32);
  const Values qkv = in.qkv.values(), wq = in.q_weight.values(), wk = in.k_weight.values(), dout = in.dout.values();
  const Values rstd = reference(qkv, wq, wk, heads, eps).rstd;
  HostTensor dqkv = in.dout, dq_weight(DType::kF32, {6}), dk_weight(DType::kF32, {6});
  cpu.ops().qk_norm_backward(*cpu.stream, {dqkv, in.qkv, in.q_weight, in.k_weight, HostTensor(DType::kF32, {9}, rstd),
                                           dq_weight, dk_weight, heads});
  const auto of_qkv = [&](const Values& x) { return dot(reference(x, wq, wk, heads, eps).out, dout); };
  const auto of_wq = [&](const Values& w) { return dot(reference(qkv, w, wk, heads, eps).out, dout); };
  const auto of_wk = [&](const Values& w) { return dot(reference(qkv, wq, w, heads, eps).out, dout); };
  CHECK(max_relative_error(dqkv, finite_difference(of_qkv, qkv)) < 1e-6);
  CHECK(max_relative_error(dq_weight, finite_difference(of_wq, wq)) < 1e-6);
  CHECK(max_relative_error(dk_weight, finite_difference(of_wk, wk)) < 1e-6);
}

TEST_CASE("qk_norm gives the same bits for any number of threads", "[threads]") {
  TestBackend cpu(largest());
  for (const DType act : {DType::kF32, DType::kBF16}) {
    const HeadLayout heads{4, 2, 24};
    const Inputs in(2100, heads, act);
    const HostTensor rstd_before = rstd_of(in, heads);
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
