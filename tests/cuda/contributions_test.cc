// The two kernels of a reduction in bf16.
#include "cuda/nccl/contributions.h"

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

TEST_CASE("contributions: those of a piece are rounded, rank by rank") {
  TestBackend backend;
  for (const Case& c : kCases) {
    const int64_t count = c.ranks * c.piece;
    Values values(static_cast<size_t>(c.ranks * c.slice));
    for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0f + 0.001f * static_cast<float>(i);
    const HostTensor full(DType::kF32, {c.ranks, c.slice}, values);
    const HostTensor send(DType::kBF16, {count + 1}, Values(static_cast<size_t>(count + 1), -1.0));
    round_contributions(handle(*backend.stream), full.view().as<float>(), send.view().as<bf16>(),
                        {c.ranks, c.slice, c.begin, c.piece});
    const Values sent = send.values();
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double operand = values[static_cast<size_t>(i / c.piece * c.slice + c.begin + i % c.piece)];
      wrong += sent[static_cast<size_t>(i)] != to_float(bf16(static_cast<float>(operand)));
    }
    CHECK(wrong == 0);
    CHECK(sent.back() == -1.0);
  }
}

TEST_CASE(
    "contributions: what is received is summed in f32 in the order of the ranks, and nothing else of the slice is "
    "touched") {
  TestBackend backend;
  for (const Case& c : kCases) {
    // Values differ in size, so that another order of the sum gives other bits.
    Values values(static_cast<size_t>(c.ranks * c.piece));
    for (int64_t i = 0; i < c.ranks * c.piece; ++i) {
      values[static_cast<size_t>(i)] = static_cast<float>(i % 251 + 1) * (i / c.piece % 2 == 0 ? 1e-5f : 3e2f);
    }
    const HostTensor received(DType::kBF16, {c.ranks, c.piece}, values);
    const HostTensor slice(DType::kF32, {c.slice}, Values(static_cast<size_t>(c.slice), -1.0));
    sum_contributions(handle(*backend.stream), received.view().as<bf16>(), slice.view().as<float>(),
                      {c.ranks, c.slice, c.begin, c.piece});
    const Values came = received.values(), sums = slice.values();
    int64_t wrong = 0;
    for (int64_t i = 0; i < c.slice; ++i) {
      float expected = -1.0f;
      if (i >= c.begin && i < c.begin + c.piece) {
        expected = 0;
        for (int r = 0; r < c.ranks; ++r) {
          expected += static_cast<float>(came[static_cast<size_t>(r * c.piece + i - c.begin)]);
        }
      }
      wrong += sums[static_cast<size_t>(i)] != expected;
    }
    CHECK(wrong == 0);
  }
}
