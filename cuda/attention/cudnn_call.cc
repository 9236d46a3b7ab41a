#include "cuda/attention/cudnn_call.h"

#include "cuda/attention/cudnn_kernels.h"

namespace tokamak {
namespace {

struct Tables {
  void* memory = nullptr;
  int64_t entries = 0;
};

// The call's own tables if they have enough entries, else new ones in `memory`. Dense documents have none.
template <class Args>
Tables tables_of(cudaStream_t stream, const AttentionGraphSpec& spec, const Args& args, std::byte* memory) {
  if (!spec.documents.ragged()) return {};
  const int64_t slots = spec.documents.count;
  if (args.tables && args.tables.dim(1) > slots) return {args.tables.data(), args.tables.dim(1)};
  const int64_t entries = document_entries(slots);
  fill_ragged_tables(stream, args.cu_seqlens, {entries, spec.heads}, memory);
  return {memory, entries};
}

}  // namespace

CallParts::CallParts(const AttentionGraphSpec& spec) {
  const DocumentBatch& documents = spec.documents;
  constexpr int64_t kBf16 = 2, kF32 = 4;
  // A single dense document is already packed, and forward writes dense documents in our layout.
  moves_lse = documents.ragged() || (spec.backward && documents.count > 1);
  tables = next(documents.ragged() ? DocumentTableLayout(document_entries(documents.count), spec.heads).bytes() : 0);
  const int64_t rows = documents.tokens(), with_rows_behind = rows + kCudnnTileRows;
  lse = next(moves_lse ? with_rows_behind * spec.heads.q_heads * kF32 : 0);
  const int64_t key_bytes = spec.own_keys() ? spec.heads.kv_width() * kBf16 : 0;
  for (size_t i = 0; i < own_keys.size(); ++i) own_keys[i] = next((i < 2 ? with_rows_behind : rows) * key_bytes);
  graph = next(0);
}

int64_t CallParts::next(int64_t bytes) {
  constexpr int64_t kAlignment = 256;
  const int64_t at = end_;
  end_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return at;
}

void call_graph(cudnnHandle_t handle, cudaStream_t stream, AttentionGraph& graph, const AttentionGraphSpec& spec,
                const Attention& args, std::byte* workspace) {
  const CallParts parts(spec);
  auto* lse = parts.moves_lse ? reinterpret_cast<float*>(workspace + parts.lse) : args.lse.as<float>();
  const Tables tables = tables_of(stream, spec, args, workspace + parts.tables);
  graph.run(handle,
            {.qkv = args.qkv.data(),
             .out = args.out.data(),
             .lse = lse,
             .tables = tables.memory,
             .table_entries = tables.entries,
             .scale = args.scale},
            workspace + parts.graph);
  if (parts.moves_lse) pack_lse(stream, lse, args.lse.as<float>(), args.qkv.dim(0), spec.heads.q_heads, 1);
}

void call_graph(cudnnHandle_t handle, cudaStream_t stream, AttentionGraph& graph, const AttentionGraphSpec& spec,
                const AttentionBackward& args, std::byte* workspace) {
  const CallParts parts(spec);
  const auto& [count, length, most_tokens] = spec.documents;
  auto* lse = args.lse.as<float>();
  if (parts.moves_lse) {
    lse = reinterpret_cast<float*>(workspace + parts.lse);
    const bool ragged = spec.documents.ragged();
    pack_lse(stream, args.lse.as<float>(), lse, spec.heads.q_heads, ragged ? args.qkv.dim(0) : count,
             ragged ? 1 : length, kCudnnTileRows * spec.heads.q_heads);
  }
  std::array<void*, 4> own_keys;
  for (size_t i = 0; i < own_keys.size(); ++i) own_keys[i] = workspace + parts.own_keys[i];
  const auto& [keys, values, dkeys, dvalues] = own_keys;
  const Tables tables = tables_of(stream, spec, args, workspace + parts.tables);
  if (spec.own_keys()) gather_keys(stream, args.qkv, spec.heads, keys, values, kCudnnTileRows);
  graph.run(handle,
            {.qkv = args.qkv.data(),
             .out = args.out.data(),
             .lse = lse,
             .dout = args.dout.data(),
             .dqkv = args.dqkv.data(),
             .own_keys = own_keys,
             .tables = tables.memory,
             .table_entries = tables.entries,
             .scale = args.scale},
            workspace + parts.graph);
  if (spec.own_keys()) scatter_keys(stream, dkeys, dvalues, spec.heads, args.dqkv);
}

}  // namespace tokamak
