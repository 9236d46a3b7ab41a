// The inner loops of attention: 2^x, transposition, and products of tiles of every edge size.
#include "backend/cpu/pack.h"
#include "support.h"

using namespace tokamak;
using namespace tokamak::testing;
using namespace tokamak::simd;

TEST_CASE("2^x by vectors is within two units in the last place, vanishes far below, and keeps NaN") {
  double worst = 0;
  for (int64_t i = -125 * 4096; i < 128 * 4096; i += 3) {
    const float x = static_cast<float>(i) / 4096.0f;
    worst =
        std::max(worst, std::abs(static_cast<double>(simd::exp2(splat(x))[0]) / std::exp2(static_cast<double>(x)) - 1));
  }
  CHECK(worst < 2.4e-7);
  CHECK(simd::exp2(splat(0.0f))[0] == 1.0f);
  CHECK(simd::exp2(splat(-1e30f))[0] <= 0x1p-126f);
  CHECK(std::isnan(simd::exp2(splat(std::numeric_limits<float>::quiet_NaN()))[0]));
}

TEST_CASE("a square of registers is transposed") {
  Vec rows[kLanes];
  for (int r = 0; r < kLanes; ++r) {
    for (int c = 0; c < kLanes; ++c) rows[r][c] = static_cast<float>(100 * r + c);
  }
  transpose(rows);
  for (int r = 0; r < kLanes; ++r) {
    for (int c = 0; c < kLanes; ++c) REQUIRE(rows[r][c] == static_cast<float>(100 * c + r));
  }
}

namespace {

// q: (n, k) rows, x: (m, k) rows; c = x q^T by the formats of tile.h, summed over features.
template <class E>
void check_product(int64_t m, int64_t n, int64_t k) {
  const int64_t lanes_n = round_up(n, kLanes);
  const Values x = random_tensor(DType::kBF16, {m, k}, "x").values(),
               q = random_tensor(DType::kBF16, {n, k}, "q").values();
  std::vector<E> a, q_rows;
  for (const double v : x) a.push_back(E(static_cast<float>(v)));
  for (const double v : q) q_rows.push_back(E(static_cast<float>(v)));
  std::vector<E> rows(static_cast<size_t>(lanes_n * k)), b(rows.size());
  simd::copy_rows(q_rows.data(), k, n, lanes_n, k, rows.data());
  features_to_b(rows.data(), lanes_n, k, b.data());
  std::vector<float> c(static_cast<size_t>(m * lanes_n), 7.0f);
  multiply<E>({.a = a.data(), .a_stride = k, .b = b.data(), .c = c.data(), .m = m, .n = lanes_n, .k = k});
  multiply<E>({.a = a.data(),
               .a_stride = k,
               .b = b.data(),
               .c = c.data(),
               .m = m,
               .n = lanes_n,
               .k = k,
               .start = Start::kOutput});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < lanes_n; ++j) {
      double expected = 0;
      for (int64_t p = 0; j < n && p < k; ++p) {
        expected += 2 * x[static_cast<size_t>(i * k + p)] * q[static_cast<size_t>(j * k + p)];
      }
      REQUIRE(static_cast<double>(c[static_cast<size_t>(i * lanes_n + j)]) == Approx(expected).margin(1e-4));
    }
  }
}

}  // namespace

TEST_CASE("a tile GEMM sums over features, for every number of rows and vectors") {
  for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 11, 12, 64}) {
    for (const int64_t n : {1, 15, 16, 17, 33, 49, 64, 80, 128}) {
      for (const int64_t k : {2, 6, 32, 34, 64}) {
        check_product<float>(m, n, k);
        check_product<TileElement<bf16>>(m, n, k);
      }
    }
  }
}

TEST_CASE("formats summed over tokens hold each element at its place") {
  using E = TileElement<bf16>;
  constexpr int kP = kPair<E>;
  for (const int64_t columns : {2, 6, 16, 34, 64}) {
    const int64_t tokens = 64, width = round_up(columns, kLanes);
    std::vector<E> rows;
    for (int64_t i = 0; i < tokens * columns; ++i) rows.push_back(E(static_cast<float>(i % 251)));
    std::vector<E> b(static_cast<size_t>(tokens * width), E(7.0f)), a(static_cast<size_t>(tokens * columns));
    interleave_rows(rows.data(), tokens, columns, width, b.data());
    b_to_a(b.data(), tokens, columns, width, a.data());
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t c = 0; c < width; ++c) {
        const float expected = c < columns ? static_cast<float>((t * columns + c) % 251) : 0.0f;
        REQUIRE(to_float(b[static_cast<size_t>((t / kP * width + c) * kP + t % kP)]) == expected);
        if (c < columns) REQUIRE(to_float(a[static_cast<size_t>(c * tokens + t)]) == expected);
      }
    }
  }
}
