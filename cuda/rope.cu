// Rotary position embedding, in place on the query and key heads. One block per token. Each thread has the same pairs
// of several heads, so it reads its cosines and sines once. Two memory accesses per element; the table's row
// comes from L2.
#include <limits>

#include "backend/formulas.h"
#include "cuda/cuda_ops.h"
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/vec.h"

namespace tokamak {
namespace {

constexpr int kThreads = 128;

struct Layout {
  int64_t row;        // elements of a token: queries, keys and values
  int heads;          // rotated heads
  int half;           // of a head
  float sign;         // of the angle
  int64_t positions;  // rows of the table
};

template <class T, int kWidth>
__global__ void rotate(T* qkv, const int32_t* __restrict__ positions, const float* __restrict__ table, Layout layout) {
  const int places = layout.half / kWidth;   // of vectors in half a head
  const int across = min(places, kThreads);  // threads that share a head
  const int first_head = threadIdx.x / across, step = kThreads / across;
  const int64_t position = positions[blockIdx.x];
  const bool known = 0 <= position && position < layout.positions;
  const float* cosines = table + (known ? position : 0) * 2 * layout.half;
  T* token = qkv + int64_t{blockIdx.x} * layout.row;
  if (first_head >= step) return;
  for (int i = threadIdx.x % across * kWidth; i < layout.half; i += across * kWidth) {
    auto cosine = load<kWidth>(cosines + i), sine = load<kWidth>(cosines + layout.half + i);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      sine[k] *= layout.sign;
      if (!known) cosine[k] = std::numeric_limits<float>::quiet_NaN();  // visible in the loss, unlike a wrong angle
    }
    for (int head = first_head; head < layout.heads; head += step) {
      T* a = token + int64_t{head} * 2 * layout.half + i;
      auto x = load<kWidth>(a), y = load<kWidth>(a + layout.half);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        const RopePair turned = rotated({x[k], y[k]}, cosine[k], sine[k]);
        x[k] = turned.a;
        y[k] = turned.b;
      }
      store(a, x);
      store(a + layout.half, y);
    }
  }
}

}  // namespace

void CudaOps::do_rope(Stream& stream, const Rope& args) {
  const HeadLayout& heads = args.heads;
  const Layout layout{.row = heads.qkv_width(),
                      .heads = static_cast<int>(heads.q_heads + heads.kv_heads),
                      .half = static_cast<int>(heads.head_dim / 2),
                      .sign = args.rotation == Rotation::kForward ? 1.0f : -1.0f,
                      .positions = args.table.dim(0)};
  const auto tokens = static_cast<unsigned>(args.positions.count());
  with_act_type(args.qkv.dtype(), [&]<class T>(T) {
    const auto run = [&]<int kWidth>() {
      launch({"rope", tokens, kThreads}, handle(stream), rotate<T, kWidth>, args.qkv.as<T>(),
             args.positions.as<int32_t>(), args.table.as<float>(), layout);
    };
    with_vec_width<T>(heads.head_dim / 2, run, args.qkv.as<T>(), args.table.as<float>());
  });
}

}  // namespace tokamak
