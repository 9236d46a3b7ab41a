// Attention, forward: a task is a document and a head.
#include "backend/cpu/attention_forward.h"
#include "backend/cpu/cpu_ops.h"

namespace tokamak {
namespace {

template <class T>
void run(const Attention& args, int64_t begin, int64_t end, int64_t head, std::byte* memory) {
  if (begin == end) return;
  const HeadLayout& heads = args.heads;
  const int64_t length = end - begin, dim = heads.head_dim, stride = heads.qkv_width();
  const flash::ForwardMemory<simd::TileElement<T>> m(memory, length, dim);
  const T* row = args.qkv.as<T>() + begin * stride;
  const T* keys = row + heads.q_width() + head / (heads.q_heads / heads.kv_heads) * dim;
  flash::pack_keys<T>({.keys = keys, .values = keys + heads.kv_width(), .stride = stride, .count = length}, dim, m);
  flash::attend<T>({.rows = row + head * dim,
                    .stride = stride,
                    .count = length,
                    .first = 0,
                    .out = args.out.as<T>() + begin * heads.q_width() + head * dim,
                    .out_stride = heads.q_width(),
                    .lse = args.lse.as<float>() + head * args.qkv.dim(0) + begin,
                    .window = effective_window(args.window, args.max_length)},
                   length, dim, ScoreScale(args.scale, args.cap), m);
}

}  // namespace

int64_t attention_workspace(const Workload& w) {
  int64_t bytes = 0;
  with_act_type(w.compute, [&]<class T>(T) { bytes = flash::worker_bytes<T>(w.max_length, w.heads.head_dim); });
  return bytes * thread_count();
}

void CpuOps::do_attention(Stream&, const Attention& args) {
  const Documents documents(args.cu_seqlens, args.qkv.dim(0), args.max_length);
  const auto* cu = documents.begins;
  with_act_type(args.qkv.dtype(), [&]<class T>(T) {
    for_each_task(documents.count, args.heads.q_heads, flash::worker_bytes<T>(args.max_length, args.heads.head_dim),
                  workspace(),
                  [&](int64_t d, int64_t head, std::byte* memory) { run<T>(args, cu[d], cu[d + 1], head, memory); });
  });
}

}  // namespace tokamak
