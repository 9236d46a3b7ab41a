// Calls of cuDNN's graphs with their tables and copies, around a fake of the graphs. Our own kernels' results are the
// reference. So declarations, tables and copies must fit each other.
#include "cuda/attention/cudnn_call.h"
#include "backend/support.h"
#include "cuda/device.h"
#include "tests/cuda/emulator/calls.h"
#include "tests/cuda/plain_graph.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

// The tolerance of two roundings to bf16, against the greatest element.
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
      std::string bytes() const { return out.bytes() + lse.bytes() + dqkv.bytes(); }
    };
    const auto results = [&](const HostTensor& tables, bool by_graph) {
      const Results r{HostTensor(DType::kBF16, {n, p.heads.q_width()}), HostTensor(DType::kF32, {p.heads.q_heads, n}),
                      HostTensor(DType::kBF16, {n, p.heads.qkv_width()})};
      const float scale = p.heads.scale();
      const int64_t longest = p.documents.length;
      const Attention forward{qkv, cu, r.out, r.lse, p.heads, scale, longest, tables};
      const AttentionBackward backward{qkv, cu, r.out, r.lse, dout, r.dqkv, p.heads, scale, longest, tables};
      if (!by_graph) {
        backend.ops().attention(*backend.stream, forward);
        backend.ops().attention_backward(*backend.stream, backward);
        return r;
      }
      const auto call = [&](const auto& args, bool is_backward) {
        const AttentionGraphSpec spec{p.documents, p.heads, is_backward};
        PlainGraph graph(spec, handle(*backend.stream));
        const HostTensor workspace(DType::kF32, {CallParts(spec).graph / 4});
        write_bytes(workspace, std::string(static_cast<size_t>(workspace.view().bytes()), '\xFF'));  // NaN
        call_graph(nullptr, handle(*backend.stream), graph, spec, args,
                   static_cast<std::byte*>(workspace.view().data()));
        backend.stream->synchronize();
      };
      call(forward, false);
      call(backward, true);
      return r;
    };
    const Results theirs = results({}, false), ours = results({}, true);
    require_close(ours.out, theirs.out);
    require_close(ours.dqkv, theirs.dqkv);
    CHECK(max_abs_error(ours.lse, theirs.lse.values()) < 1e-5);

    // Tables that were made before are read where they have an entry for each slot and one for the end: then neither
    // pass makes any.
    if (!p.documents.ragged()) continue;
    for (const int64_t entries : {p.documents.count, p.documents.count + 1, p.documents.count + 9}) {
      if (entries < cu.count()) continue;
      INFO(entries << " entries");
      const HostTensor tables(DType::kI32, {DocumentTables::kRows, entries});
      backend.ops().document_tables(*backend.stream, {.cu_seqlens = cu, .tables = tables, .heads = p.heads});
      backend.stream->synchronize();
      const int64_t before = emulator::kernels_run("ragged_tables");
      const Results from_tables = results(tables, true);
      CHECK(emulator::kernels_run("ragged_tables") - before == (entries > p.documents.count ? 0 : 2));
      CHECK((from_tables.bytes() == ours.bytes()));
    }
  }
}
