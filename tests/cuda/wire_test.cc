// The two kernels of a reduction over a bf16 wire.
#include "cuda/wire.h"

#include "backend/support.h"
#include "cuda/device.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

struct Case {
  int ranks;
  int64_t slice;
  int64_t begin;
  int64_t piece;
};
// Blocks that end inside a rank's part, pieces at either end of a slice, one rank, many.
constexpr Case kCases[] = {{1, 64, 0, 64},      {2, 64, 32, 32},        {3, 4096, 0, 2048},
                           {3, 4096, 2048, 96}, {5, 10016, 4000, 6016}, {16, 2080, 2048, 32}};

}  // namespace

TEST_CASE("wire: the addends of a piece are rounded, rank by rank") {
  TestBackend backend;
  for (const Case& c : kCases) {
    const int64_t count = c.ranks * c.piece;
    HostTensor full(DType::kF32, {c.ranks, c.slice}), send(DType::kBF16, {count + 1});
    for (int64_t i = 0; i < c.ranks * c.slice; ++i) full.as<float>()[i] = 1.0f + 0.001f * static_cast<float>(i);
    send.as<bf16>()[count] = bf16(-1.0f);
    round_to_wire(handle(*backend.stream), full.as<float>(), send.as<bf16>(), {c.ranks, c.slice, c.begin, c.piece});
    backend.stream->synchronize();
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; ++i) {
      const float addend = full.as<float>()[i / c.piece * c.slice + c.begin + i % c.piece];
      wrong += to_float(send.as<bf16>()[i]) != to_float(bf16(addend));
    }
    CHECK(wrong == 0);
    CHECK(to_float(send.as<bf16>()[count]) == -1.0f);
  }
}

TEST_CASE("wire: what has come is summed in f32 in the order of the ranks, and nothing else of the slice is touched") {
  TestBackend backend;
  for (const Case& c : kCases) {
    HostTensor received(DType::kBF16, {c.ranks, c.piece}), slice(DType::kF32, {c.slice});
    // Of sizes that differ, so that another order gives other bits.
    for (int64_t i = 0; i < c.ranks * c.piece; ++i) {
      received.as<bf16>()[i] = bf16(static_cast<float>(i % 251 + 1) * (i / c.piece % 2 == 0 ? 1e-5f : 3e2f));
    }
    for (int64_t i = 0; i < c.slice; ++i) slice.as<float>()[i] = -1.0f;
    sum_from_wire(handle(*backend.stream), received.as<bf16>(), slice.as<float>(),
                  {c.ranks, c.slice, c.begin, c.piece});
    backend.stream->synchronize();
    int64_t wrong = 0;
    for (int64_t i = 0; i < c.slice; ++i) {
      float expected = -1.0f;
      if (i >= c.begin && i < c.begin + c.piece) {
        expected = 0;
        for (int r = 0; r < c.ranks; ++r) expected += to_float(received.as<bf16>()[r * c.piece + i - c.begin]);
      }
      wrong += slice.as<float>()[i] != expected;
    }
    CHECK(wrong == 0);
  }
}
