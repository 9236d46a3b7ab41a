// Token embedding. Forward copies or scales rows, a warp per token. Backward adds rows in token order,
// deterministically. It first sorts the tokens by id, stably. Each token counts how many come before it: N^2
// comparisons, about 0.2 ms of an H100's integer units at N = 32768. Then one warp per distinct id adds its rows in
// registers, with some loads prefetched, and updates its row of the table once.
#include <limits>
#include <type_traits>

#include "cuda/cuda_ops.h"
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/reduce.h"
#include "cuda/vec.h"

namespace tokamak {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int64_t kTile = 1024;  // ids per block that tokens are compared with
constexpr int kAhead = 8;        // rows loaded before they are added
static_assert(kWarp % kAhead == 0);

// All bits set: NaN in either type, for an id outside the table.
template <class Word>
__device__ Word all_ones() {
  if constexpr (sizeof(Word) == 16) {
    return make_uint4(~0u, ~0u, ~0u, ~0u);
  } else {
    return static_cast<Word>(~Word{0});
  }
}

// Rows of `words` words.
template <class Word>
__global__ void copy_rows(const int32_t* __restrict__ ids, const Word* __restrict__ table, Word* __restrict__ out,
                          int64_t tokens, int64_t vocab, int64_t words) {
  const int64_t n = int64_t{blockIdx.x} * kWarps + warp();
  if (n >= tokens) return;
  const int64_t id = ids[n];
  const bool known = 0 <= id && id < vocab;
  const Word* from = table + (known ? id : 0) * words;
#pragma unroll 4
  for (int64_t i = lane(); i < words; i += kWarp) out[n * words + i] = known ? from[i] : all_ones<Word>();
}

template <class T, int kWidth>
__global__ void scale_rows(const int32_t* __restrict__ ids, const T* __restrict__ table, T* __restrict__ out,
                           float scale, int64_t tokens, int64_t vocab, int64_t width) {
  const int64_t n = int64_t{blockIdx.x} * kWarps + warp();
  if (n >= tokens) return;
  const int64_t id = ids[n];
  const bool known = 0 <= id && id < vocab;
  const float factor = known ? scale : std::numeric_limits<float>::quiet_NaN();
  const T* from = table + (known ? id : 0) * width;
  for (int64_t c = lane() * kWidth; c < width; c += kWarp * kWidth) {
    auto x = load<kWidth>(from + c);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) x[i] *= factor;
    store(out + n * width + c, x);
  }
}

// place[n] += number of tokens of tile blockIdx.y before token n in the order by id. Integer sums are the
// same in any order of the additions.
__global__ void count_before(const int32_t* __restrict__ ids, int64_t tokens, int32_t* place) {
  __shared__ int32_t tile[kTile];
  const int64_t begin = blockIdx.y * kTile, end = min(tokens, begin + kTile);
  for (int64_t m = begin + threadIdx.x; m < end; m += kThreads) tile[m - begin] = ids[m];
  __syncthreads();
  const int64_t n = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (n >= tokens) return;
  const int32_t id = ids[n];
  const int length = static_cast<int>(end - begin);
  int before = 0;
  if (end <= n) {  // the whole tile precedes n: equal ids count
#pragma unroll 16
    for (int m = 0; m < length; ++m) before += tile[m] <= id ? 1 : 0;
  } else if (begin > n) {
#pragma unroll 16
    for (int m = 0; m < length; ++m) before += tile[m] < id ? 1 : 0;
  } else {
    for (int m = 0; m < length; ++m) before += tile[m] < id || (tile[m] == id && begin + m < n) ? 1 : 0;
  }
  if (before > 0) atomicAdd(place + n, before);
}

struct Sorted {
  int32_t* token;  // (N) sorted by id, stable
  int32_t* id;     // (N) the id of that token
};

__global__ void sort_tokens(const int32_t* ids, const int32_t* place, int64_t tokens, Sorted to) {
  const int64_t n = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (n >= tokens) return;
  to.token[place[n]] = static_cast<int32_t>(n);
  to.id[place[n]] = ids[n];
}

// A warp per position in the sorted order; the first of an id adds all of its rows, in the columns of blockIdx.y.
template <class T, int kWidth>
__global__ void add_rows(Sorted sorted, const T* __restrict__ dout, float scale, float* dtable, int64_t tokens,
                         int64_t vocab, int64_t width) {
  const int64_t first = int64_t{blockIdx.x} * kWarps + warp();
  const int64_t c = (int64_t{blockIdx.y} * kWarp + lane()) * kWidth;
  if (first >= tokens) return;
  const int32_t id = sorted.id[first];
  if (id < 0 || id >= vocab || (first > 0 && sorted.id[first - 1] == id)) return;
  const bool inside = c < width;  // the other lanes stay for the ballots
  float* to = dtable + id * width + c;
  Vec<kWidth> sum = {};
  if (inside) sum = load<kWidth>(to);
  int found = kWarp;
  for (int64_t at = first; found == kWarp; at += kWarp) {
    const int64_t mine = at + lane();
    const bool same = mine < tokens && sorted.id[mine] == id;
    const int32_t token = same ? sorted.token[mine] : 0;
    found = __popc(__ballot_sync(0xFFFFFFFFu, same));  // equal ids are the first lanes
    for (int begin = 0; begin < found; begin += kAhead) {
      Packed<T, kWidth> rows[kAhead] = {};
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const int64_t n = __shfl_sync(0xFFFFFFFFu, token, begin + k);
        if (inside && begin + k < found) rows[k] = load_packed<kWidth>(dout + n * width + c);
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (begin + k >= found) continue;
        const auto row = unpack(rows[k]);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) sum[i] += scale * row[i];
      }
    }
  }
  if (inside) store(to, sum);
}

}  // namespace

int64_t embedding_backward_scratch(const Workload& workload) { return 3 * workload.tokens * size_of(DType::kI32); }

void CudaOps::do_embedding(Stream& stream, const Embedding& args) {
  const int64_t tokens = args.ids.count(), vocab = args.table.dim(0),
                row = args.table.dim(1) * size_of(args.table.dtype());
  if (args.scale != 1) {
    return with_act_type(args.table.dtype(), [&]<class T>(T) {
      const int64_t width = args.table.dim(1);
      const auto run = [&]<int kWidth>() {
        launch({"embedding", blocks_for(tokens, kWarps), kThreads}, handle(stream), scale_rows<T, kWidth>,
               args.ids.as<int32_t>(), args.table.as<T>(), args.out.as<T>(), args.scale, tokens, vocab, width);
      };
      with_vec_width<T>(width, run, args.table.as<T>(), args.out.as<T>());
    });
  }
  const auto copy = [&]<class Word>(Word) {
    launch({"embedding", blocks_for(tokens, kWarps), kThreads}, handle(stream), copy_rows<Word>, args.ids.as<int32_t>(),
           static_cast<const Word*>(args.table.data()), static_cast<Word*>(args.out.data()), tokens, vocab,
           row / static_cast<int64_t>(sizeof(Word)));
  };
  const auto at = [](const Tensor& tensor) { return static_cast<const std::byte*>(tensor.data()); };
  if (row % 16 == 0 && skew_of(at(args.table)) == 0 && skew_of(at(args.out)) == 0) return copy(uint4{});
  with_act_type(args.table.dtype(),
                [&]<class T>(T) { copy(std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>{}); });
}

void CudaOps::do_embedding_backward(Stream& stream, const EmbeddingBackward& args) {
  const int64_t tokens = args.ids.count(), width = args.dtable.dim(1);
  if (tokens == 0) return;
  const auto* ids = args.ids.as<int32_t>();
  auto* place = reinterpret_cast<int32_t*>(scratch(3 * tokens * size_of(DType::kI32)));
  const Sorted sorted{place + tokens, place + 2 * tokens};
  TOKAMAK_CUDA(cudaMemsetAsync(place, 0, static_cast<size_t>(tokens * size_of(DType::kI32)), handle(stream)));
  const unsigned blocks = blocks_for(tokens, kThreads);
  launch({"embedding_backward, count", dim3(blocks, blocks_for(tokens, kTile)), kThreads}, handle(stream), count_before,
         ids, tokens, place);
  launch({"embedding_backward, sort", blocks, kThreads}, handle(stream), sort_tokens, ids, place, tokens, sorted);
  with_act_type(args.dout.dtype(), [&]<class T>(T) {
    const auto add = [&]<int kWidth>() {
      const dim3 grid(blocks_for(tokens, kWarps), blocks_for(width, int64_t{kWarp} * kWidth));
      launch({"embedding_backward", grid, kThreads}, handle(stream), add_rows<T, kWidth>, sorted, args.dout.as<T>(),
             args.scale, args.dtable.as<float>(), tokens, args.dtable.dim(0), width);
    };
    with_vec_width<T>(width, add, args.dout.as<T>(), args.dtable.as<float>());
  });
}

}  // namespace tokamak
