// Rotary embedding against rotations in float64; the inverse is the gradient.
#include "support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

constexpr int64_t kTokens = 45, kPositions = 61;
const HeadLayout kHeads{6, 2, 10};
// Half a head is less than one 16-byte vector, one, several, or more than a GPU's block has threads. In some cases a
// block has more heads than it rotates at once, with a remainder.
const std::vector<HeadLayout> kLayouts = {kHeads, {5, 5, 16}, {20, 4, 128}, {4, 1, 80}, {40, 8, 48}, {2, 1, 266}};

HostTensor angle_table(int64_t positions, int64_t head_dim) {
  Values values;
  for (int64_t p = 0; p < positions; ++p) {
    for (const bool sine : {false, true}) {
      for (int64_t i = 0; i < head_dim / 2; ++i) {
        const double angle =
            static_cast<double>(p) * std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
        values.push_back(sine ? std::sin(angle) : std::cos(angle));
      }
    }
  }
  return HostTensor(DType::kF32, {positions, head_dim}, values);
}

Values rotated(Values x, const Values& positions, const Values& table, const HeadLayout& heads, double sign) {
  const auto d = static_cast<size_t>(heads.head_dim), width = static_cast<size_t>(heads.qkv_width());
  for (size_t n = 0; n < positions.size(); ++n) {
    const size_t row = static_cast<size_t>(positions[n]) * d;
    for (size_t h = 0; h < static_cast<size_t>(heads.q_heads + heads.kv_heads); ++h) {
      for (size_t i = 0; i < d / 2; ++i) {
        double& a = x[n * width + h * d + i];
        double& b = x[n * width + h * d + i + d / 2];
        const double c = table[row + i], s = sign * table[row + d / 2 + i], a0 = a, b0 = b;
        a = a0 * c - b0 * s;
        b = b0 * c + a0 * s;
      }
    }
  }
  return x;
}

}  // namespace

TEST_CASE("rope rotates queries and keys and leaves values alone") {
  TestBackend cpu;
  const HostTensor positions = random_ids({kTokens}, 0, kPositions, "positions");
  const auto check = [&](const HeadLayout& heads, DType act) {
    const HostTensor table = angle_table(kPositions, heads.head_dim);
    const HostTensor before = random_tensor(act, {kTokens, heads.qkv_width()}, "qkv");
    for (const Rotation rotation : {Rotation::kForward, Rotation::kInverse}) {
      HostTensor qkv = before;
      cpu.ops().rope(*cpu.stream, {qkv, positions, table, heads, rotation});
      const double sign = rotation == Rotation::kForward ? 1 : -1;
      const Values expected = rotated(before.values(), positions.values(), table.values(), heads, sign);
      CHECK(max_error_before_rounding(qkv, expected) < 1e-7);
      const int64_t values_at = heads.q_width() + heads.kv_width();
      for (int64_t n = 0; n < kTokens; ++n) {
        const int64_t row = n * heads.qkv_width();
        const Tensor was = before.view().flat(row + values_at, row + heads.qkv_width());
        const Tensor is = qkv.view().flat(row + values_at, row + heads.qkv_width());
        REQUIRE((bytes_of(was) == bytes_of(is)));
      }
    }
  };
  for (const HeadLayout& heads : kLayouts) {
    for (const DType act : {DType::kF32, DType::kBF16}) check(heads, act);
  }
}

TEST_CASE("rope accepts tensors at any alignment") {
  TestBackend cpu;
  const HeadLayout heads{2, 1, 16};
  const int64_t count = kTokens * heads.qkv_width();
  const HostTensor table = angle_table(kPositions, heads.head_dim);
  const HostTensor positions = random_ids({kTokens}, 0, kPositions, "positions");
  HostTensor memory = random_tensor(DType::kF32, {count + 1}, "qkv");
  const Values before = memory.values();
  const Tensor qkv = memory.view().flat(1, count + 1).reshape({kTokens, heads.qkv_width()});
  cpu.ops().rope(*cpu.stream, {qkv, positions, table, heads});
  Values expected = rotated(Values(before.begin() + 1, before.end()), positions.values(), table.values(), heads, 1);
  expected.insert(expected.begin(), before[0]);
  CHECK(max_error_before_rounding(memory, expected) < 1e-7);
}

TEST_CASE("rope pairs element i with element i + D/2, and turns a quarter as expected") {
  TestBackend cpu;
  const HostTensor table(DType::kF32, {2, 4}, {1, 1, 0, 0, 0, 1, 1, 0});  // position 1: pair 0 by 90 degrees
  const HostTensor positions(DType::kI32, {2}, {1, 0});
  HostTensor qkv(DType::kF32, {2, 12}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  cpu.ops().rope(*cpu.stream, {qkv, positions, table, {1, 1, 4}});
  CHECK(qkv.values() == Values{-3, 2, 1, 4, -7, 6, 5, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
}

TEST_CASE("the inverse rotation undoes rope and is its gradient") {
  TestBackend cpu;
  const HeadLayout heads{2, 1, 6};
  const HostTensor table = angle_table(9, heads.head_dim);
  const HostTensor positions(DType::kI32, {3}, {8, 0, 5});
  const HostTensor x = random_tensor(DType::kF32, {3, heads.qkv_width()}, "qkv");
  const HostTensor dout = random_tensor(DType::kF32, {3, heads.qkv_width()}, "dout");
  HostTensor there_and_back = x, gradient = dout;
  cpu.ops().rope(*cpu.stream, {there_and_back, positions, table, heads, Rotation::kForward});
  CHECK(max_abs_error(there_and_back, x.values()) > 0.1);
  cpu.ops().rope(*cpu.stream, {there_and_back, positions, table, heads, Rotation::kInverse});
  CHECK(max_abs_error(there_and_back, x.values()) < 1e-6);

  cpu.ops().rope(*cpu.stream, {gradient, positions, table, heads, Rotation::kInverse});
  const auto loss = [&](const Values& v) {
    return dot(rotated(v, positions.values(), table.values(), heads, 1), dout.values());
  };
  CHECK(max_relative_error(gradient, finite_difference(loss, x.values())) < 1e-6);
}

TEST_CASE("rope gives the same bits for any number of threads", "[threads]") {
  TestBackend cpu;
  const HostTensor table = angle_table(kPositions, kHeads.head_dim);
  const HostTensor positions = random_ids({1031}, 0, kPositions, "positions");
  const HostTensor before = random_tensor(DType::kBF16, {1031, kHeads.qkv_width()}, "qkv");
  require_thread_invariance([&] {
    HostTensor qkv = before;
    cpu.ops().rope(*cpu.stream, {qkv, positions, table, kHeads});
    return qkv.bytes();
  });
}

TEST_CASE("rope refuses positions outside the table", "[cpu]") {
  TestBackend cpu;
  const HostTensor table = angle_table(kPositions, kHeads.head_dim);
  HostTensor qkv(DType::kF32, {1, kHeads.qkv_width()});
  for (const double bad : {-1.0, static_cast<double>(kPositions)}) {
    const HostTensor position(DType::kI32, {1}, {bad});
    CHECK_THROWS_AS(cpu.ops().rope(*cpu.stream, {qkv, position, table, kHeads}), Error);
  }
}

TEST_CASE("a position outside the table shows as NaN where it is not refused") {
  TestBackend cpu;
  const HostTensor table = angle_table(kPositions, kHeads.head_dim);
  const int64_t rotated_width = kHeads.q_width() + kHeads.kv_width();
  for (const double bad : {-1.0, static_cast<double>(kPositions)}) {
    const HostTensor position(DType::kI32, {1}, {bad});
    HostTensor qkv(DType::kF32, {1, kHeads.qkv_width()}, Values(static_cast<size_t>(kHeads.qkv_width()), 1.0));
    try {
      cpu.ops().rope(*cpu.stream, {qkv, position, table, kHeads});
    } catch (const Error&) {
      continue;
    }
    const Values out = qkv.values();
    CHECK(std::all_of(out.begin(), out.begin() + rotated_width, [](double v) { return std::isnan(v); }));
  }
}
