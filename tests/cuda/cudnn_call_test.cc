// What is done around cuDNN's graphs, with a fake of them: plain loops over the tensors as a graph declares them.
// With our own kernels' results as the reference, it shows that declarations, tables and copies fit each other.
#include <map>
#include <numeric>

#include "backend/support.h"
#include "cuda/attention/cudnn_call.h"
#include "cuda/attention/cudnn_tensors.h"
#include "cuda/device.h"
#include "tests/cuda/emulator/emulator.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

class PlainGraph final : public AttentionGraph {
 public:
  explicit PlainGraph(const AttentionGraphSpec& spec) : spec_(spec) {}
  int64_t workspace_bytes() const override { return 0; }
  std::string engine() const override { return "plain"; }

  void run(cudnnHandle_t, const AttentionPointers& p, std::byte*) override {
    under_test().stream->synchronize();  // cuDNN's work comes in the stream's order, and on the device
    const emulator::Access access;
    float scale = p.scale;
    const auto addresses = addresses_of(spec_, p, &scale);
    addresses_ = {addresses.begin(), addresses.end()};
    check_rows_behind();
    for (int64_t b = 0; b < spec_.documents.count; ++b) {
      const int64_t length =
          spec_.documents.ragged() ? static_cast<int32_t*>(addresses_.at(kKeyLengths))[b] : spec_.documents.length;
      spec_.backward ? backward(b, length, scale) : forward(b, length, scale);
    }
  }

 private:
  using Numbers = std::vector<float>;

  // What cuDNN may load whole tiles of: in the workspace zeros follow it.
  void check_rows_behind() const {
    int64_t tokens = spec_.documents.tokens();
    if (spec_.documents.ragged()) {
      REQUIRE(addresses_.at(kQueryLengths) == addresses_.at(kKeyLengths));  // no queries without keys
      const auto* lengths = static_cast<const int32_t*>(addresses_.at(kKeyLengths));
      tokens = std::accumulate(lengths, lengths + spec_.documents.count, int64_t{0});
    }
    const auto zeros_behind = [&](CallTensor tensor, int64_t row_bytes) {
      const auto* rows = static_cast<const char*>(addresses_.at(tensor));
      return std::count(rows + tokens * row_bytes, rows + (tokens + 128) * row_bytes, 0) == 128 * row_bytes;
    };
    if (spec_.own_keys()) {
      CHECK(zeros_behind(kKey, spec_.heads.kv_width() * 2));
      CHECK(zeros_behind(kValue, spec_.heads.kv_width() * 2));
    }
    if (spec_.backward && CallParts(spec_).moves_lse) CHECK(zeros_behind(kStats, spec_.heads.q_heads * 4));
  }

  template <class T>
  T* row(CallTensor tensor, int64_t b, int64_t h, int64_t t) const {
    const CallTensorShape shape = shape_of(spec_, tensor);
    const auto offsets = offsets_of(spec_, tensor);
    const int64_t begin = offsets ? static_cast<int64_t*>(addresses_.at(*offsets))[b] : b * shape.strides[0];
    return static_cast<T*>(addresses_.at(tensor)) + begin + h * shape.strides[1] + t * shape.strides[2];
  }
  // (T, D) of a head.
  Numbers read(CallTensor tensor, int64_t b, int64_t h, int64_t length) const {
    Numbers all;
    for (int64_t t = 0; t < length; ++t) {
      const bf16* elements = row<bf16>(tensor, b, h, t);
      for (int64_t i = 0; i < spec_.heads.head_dim; ++i) all.push_back(to_float(elements[i]));
    }
    return all;
  }
  void write(CallTensor tensor, int64_t b, int64_t h, int64_t length, const Numbers& all) const {
    for (int64_t n = 0, d = spec_.heads.head_dim; n < length * d; ++n) {
      row<bf16>(tensor, b, h, n / d)[n % d] = bf16(all[static_cast<size_t>(n)]);
    }
  }
  float dot(const Numbers& x, int64_t t, const Numbers& y, int64_t s) const {
    float sum = 0;
    for (int64_t i = 0, d = spec_.heads.head_dim; i < d; ++i) sum += x[at(t * d + i)] * y[at(s * d + i)];
    return sum;
  }
  void add(Numbers& to, int64_t t, float factor, const Numbers& from, int64_t s) const {
    for (int64_t i = 0, d = spec_.heads.head_dim; i < d; ++i) to[at(t * d + i)] += factor * from[at(s * d + i)];
  }
  static size_t at(int64_t n) { return static_cast<size_t>(n); }
  int64_t group() const { return spec_.heads.q_heads / spec_.heads.kv_heads; }

  void forward(int64_t b, int64_t length, float scale) const {
    for (int64_t h = 0; h < spec_.heads.q_heads; ++h) {
      const Numbers q = read(kQuery, b, h, length), k = read(kKey, b, h / group(), length),
                    v = read(kValue, b, h / group(), length);
      Numbers out(q.size());
      for (int64_t t = 0; t < length; ++t) {
        float total = 0;
        for (int64_t s = 0; s <= t; ++s) total += std::exp(scale * dot(q, t, k, s));
        for (int64_t s = 0; s <= t; ++s) add(out, t, std::exp(scale * dot(q, t, k, s)) / total, v, s);
        *row<float>(kStats, b, h, t) = std::log(total);
      }
      write(kOut, b, h, length, out);
    }
  }

  void backward(int64_t b, int64_t length, float scale) const {
    for (int64_t kv = 0; kv < spec_.heads.kv_heads; ++kv) {
      const Numbers k = read(kKey, b, kv, length), v = read(kValue, b, kv, length);
      Numbers dk(k.size()), dv(k.size());
      for (int64_t h = kv * group(); h < (kv + 1) * group(); ++h) {
        const Numbers q = read(kQuery, b, h, length), out = read(kOut, b, h, length), dout = read(kDOut, b, h, length);
        Numbers dq(q.size());
        for (int64_t t = 0; t < length; ++t) {
          for (int64_t s = 0; s <= t; ++s) {
            const float weight = std::exp(scale * dot(q, t, k, s) - *row<float>(kStats, b, h, t));
            const float ds = scale * weight * (dot(dout, t, v, s) - dot(dout, t, out, t));
            add(dq, t, ds, k, s);
            add(dk, s, ds, q, t);
            add(dv, s, weight, dout, t);
          }
        }
        write(kDQuery, b, h, length, dq);
      }
      write(kDKey, b, kv, length, dk);
      write(kDValue, b, kv, length, dv);
    }
  }

  AttentionGraphSpec spec_;
  std::map<int64_t, void*> addresses_;
};

// Of two roundings to bf16, against the greatest element.
void require_close(const HostTensor& a, const HostTensor& b) {
  double greatest = 0;
  for (const double x : b.values()) greatest = std::max(greatest, std::abs(x));
  CHECK(max_abs_error(a, b.values()) < greatest / 64);
}

}  // namespace

TEST_CASE("around cuDNN's graph: dense and ragged documents, grouped heads, fewer tokens and documents than planned") {
  TestBackend backend;
  struct Problem {
    HeadLayout heads;
    Values cu;
    DocumentBatch documents;
  };
  for (const Problem& p : {Problem{{4, 2, 8}, {0, 5, 5, 14, 15, 15}, ragged_documents(5, 9, 31)},
                           Problem{{3, 3, 16}, {0, 7, 10}, ragged_documents(2, 8, 10)},
                           Problem{{4, 1, 8}, {0, 3, 12, 13}, ragged_documents(3, 9, 13)},
                           Problem{{4, 2, 8}, {0, 6, 12}, {2, 6}}, Problem{{2, 1, 8}, {0, 6}, {1, 6}}}) {
    INFO(p.heads.q_heads << "/" << p.heads.kv_heads << " heads, " << p.documents.count << " documents");
    const auto n = static_cast<int64_t>(p.cu.back());
    const HostTensor qkv = random_tensor(DType::kBF16, {n, p.heads.qkv_width()}, "qkv"),
                     dout = random_tensor(DType::kBF16, {n, p.heads.q_width()}, "dout"),
                     cu(DType::kI32, {static_cast<int64_t>(p.cu.size())}, p.cu);
    struct Results {
      HostTensor out, lse, dqkv;
    } theirs, ours;
    for (Results* r : {&theirs, &ours}) {
      *r = {HostTensor(DType::kBF16, {n, p.heads.q_width()}), HostTensor(DType::kF32, {p.heads.q_heads, n}),
            HostTensor(DType::kBF16, {n, p.heads.qkv_width()})};
      const float scale = p.heads.scale();
      const Attention forward{qkv, cu, r->out, r->lse, p.heads, scale, p.documents.length};
      const AttentionBackward backward{qkv, cu, r->out, r->lse, dout, r->dqkv, p.heads, scale, p.documents.length};
      if (r == &theirs) {
        backend.ops().attention(*backend.stream, forward);
        backend.ops().attention_backward(*backend.stream, backward);
        continue;
      }
      const auto call = [&](const auto& args, bool is_backward) {
        const AttentionGraphSpec spec{p.documents, p.heads, is_backward};
        PlainGraph graph(spec);
        const HostTensor workspace(DType::kF32, {CallParts(spec).graph / 4});
        write_bytes(workspace, std::string(static_cast<size_t>(workspace.view().bytes()), '\xFF'));  // NaN
        call_graph(nullptr, handle(*backend.stream), graph, spec, args,
                   static_cast<std::byte*>(workspace.view().data()));
      };
      call(forward, false);
      call(backward, true);
    }
    require_close(ours.out, theirs.out);
    require_close(ours.dqkv, theirs.dqkv);
    CHECK(max_abs_error(ours.lse, theirs.lse.values()) < 1e-5);
  }
}
