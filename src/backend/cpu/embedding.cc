// Token embedding. Forward copies rows, or scales them. Backward adds them in token order, each thread owning a range
// of columns, so the sum for a repeated token does not depend on the number of threads.
#include <cstring>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/partition.h"
#include "base/error.h"

namespace tokamak {
namespace {

constexpr int64_t kColumns = 16;  // columns are assigned to threads in groups of one cache line of f32

void check_ids(const int32_t* ids, int64_t count, int64_t vocab) {
  for (int64_t n = 0; n < count; ++n) {
    TOKAMAK_CHECK(0 <= ids[n] && ids[n] < vocab, "token ", n, " has id ", ids[n], ", vocabulary of ", vocab);
  }
}

template <class T>
void add_columns(float* dtable, const T* dout, float scale, const int32_t* ids, int64_t tokens, int64_t width,
                 int64_t begin, int64_t end) {
  for (int64_t n = 0; n < tokens; ++n) {
    float* to = dtable + ids[n] * width;
    const T* from = dout + n * width;
#pragma omp simd
    for (int64_t c = begin; c < end; ++c) to[c] += scale * to_float(from[c]);
  }
}

}  // namespace

void CpuOps::do_embedding(Stream&, const Embedding& args) {
  const int64_t tokens = args.ids.count(), width = args.table.dim(1);
  const auto* ids = args.ids.as<int32_t>();
  check_ids(ids, tokens, args.table.dim(0));
  if (args.scale != 1) {
    return with_act_type(args.table.dtype(), [&]<class T>(T) {
      parallel_for(tokens, row_grain(width), [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          const T* from = args.table.as<T>() + ids[n] * width;
          T* to = args.out.as<T>() + n * width;
          for (int64_t c = 0; c < width; ++c) to[c] = from_float<T>(args.scale * to_float(from[c]));
        }
      });
    });
  }
  const auto* table = static_cast<const std::byte*>(args.table.data());
  auto* out = static_cast<std::byte*>(args.out.data());
  const int64_t row = width * size_of(args.table.dtype());
  parallel_for(tokens, row_grain(width), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) std::memcpy(out + n * row, table + ids[n] * row, static_cast<size_t>(row));
  });
}

void CpuOps::do_embedding_backward(Stream&, const EmbeddingBackward& args) {
  const int64_t tokens = args.ids.count(), width = args.dtable.dim(1);
  const auto* ids = args.ids.as<int32_t>();
  check_ids(ids, tokens, args.dtable.dim(0));
  auto* dtable = args.dtable.as<float>();
  with_act_type(args.dout.dtype(), [&]<class T>(T) {
    const T* dout = args.dout.as<T>();
    parallel_for((width + kColumns - 1) / kColumns, 1, [&](int64_t begin, int64_t end) {
      add_columns(dtable, dout, args.scale, ids, tokens, width, begin * kColumns, std::min(width, end * kColumns));
    });
  });
}

}  // namespace tokamak
