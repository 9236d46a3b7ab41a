#include "base/bf16.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/rng_formulas.h"

using namespace tokamak;

namespace {

float float_of(uint32_t bits) { return std::bit_cast<float>(bits); }

// Between neighbours of bf16, both signs: close to one of them, half-way, subnormal, across a power of two, the
// smallest positive float, just below the greatest bf16.
constexpr float kBetween[] = {1.0f + 0x1p-23f,
                              -1.0f - 0x1.8p-8f,
                              3.1415927f,
                              -0x1.FFp10f - 0x1p-12f,
                              0x1.234568p-130f,
                              -0x1.00002p-127f + 0x1p-149f,
                              0x1p-149f,
                              0x1.FDFFFEp127f,
                              1e-8f,
                              -2.0f + 0x1p-23f,
                              0.1f};

}  // namespace

TEST_CASE("every bf16 survives the way to float and back") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    bf16 x;
    x.bits = static_cast<uint16_t>(bits);
    if (std::isnan(static_cast<float>(x))) continue;
    REQUIRE(bf16(static_cast<float>(x)).bits == bits);
  }
}

TEST_CASE("rounding goes to the nearest, ties to even") {
  CHECK(bf16(1.0f + 0x1p-8f).bits == bf16(1.0f).bits);                // tie, even below
  CHECK(bf16(1.0f + 3 * 0x1p-8f).bits == bf16(1.0f + 0x1p-6f).bits);  // tie, even above
  CHECK(bf16(1.0f + 0x1p-8f + 0x1p-20f).bits == bf16(1.0f + 0x1p-7f).bits);
  CHECK(static_cast<float>(bf16(std::numeric_limits<float>::max())) == std::numeric_limits<float>::infinity());
}

TEST_CASE("NaN and infinity stay what they are") {
  CHECK(std::isnan(static_cast<float>(bf16(std::nanf("")))));
  CHECK(std::isnan(static_cast<float>(bf16(std::bit_cast<float>(0x7F800001u)))));  // payload in the lost bits
  CHECK(std::isinf(static_cast<float>(bf16(-std::numeric_limits<float>::infinity()))));
}

TEST_CASE(
    "rounding at random takes either neighbour, the upper one for as many of the 65536 draws as x is above the lower") {
  for (const float x : kBetween) {
    INFO(x);
    const auto bits = std::bit_cast<uint32_t>(x);
    const auto lower = static_cast<uint16_t>(bits >> 16);
    const uint32_t above = bits & 0xFFFFu;  // of 65536 parts of the way to the neighbour
    REQUIRE(above != 0);
    uint32_t ups = 0, elsewhere = 0;
    for (uint32_t random = 0; random < 0x10000; ++random) {
      const uint16_t rounded = round_at_random(x, static_cast<uint16_t>(random)).bits;
      ups += rounded == lower + 1;
      elsewhere += rounded != lower && rounded != lower + 1;
    }
    CHECK(ups == above);
    CHECK(elsewhere == 0);
    const double mean = (float_of(uint32_t{lower} << 16) * static_cast<double>(0x10000 - ups) +
                         float_of((lower + 1u) << 16) * static_cast<double>(ups)) /
                        0x10000;
    CHECK(mean == static_cast<double>(x));  // all sums are exact in f64
  }
}

TEST_CASE("ten million draws of Philox round without bias: within five standard deviations") {
  constexpr int64_t kDraws = 10'000'000;
  uint64_t stream = 0;
  for (const float x : kBetween) {
    INFO(x);
    const auto lower = static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16);
    int64_t ups = 0;
    ++stream;
    for (uint32_t block = 0; block < kDraws / 8; ++block) {
      for (const uint32_t word : rng_formulas::philox4x32({block, 0, static_cast<uint32_t>(stream), 0}, {2026, 0})) {
        ups += round_at_random(x, static_cast<uint16_t>(word)).bits != lower;
        ups += round_at_random(x, static_cast<uint16_t>(word >> 16)).bits != lower;
      }
    }
    // A binomial variable, of which the mean of the rounded values is a linear function.
    const double p = (std::bit_cast<uint32_t>(x) & 0xFFFFu) / 65536.0;
    CHECK(std::abs(static_cast<double>(ups) - kDraws * p) <= 5 * std::sqrt(kDraws * p * (1 - p)));
  }
}

TEST_CASE("rounding at random never changes a bf16, infinity or zero, keeps NaN, and makes nothing finite infinite") {
  for (const uint32_t random : {0u, 1u, 0x7FFFu, 0x8000u, 0xFFFFu}) {
    const auto draw = static_cast<uint16_t>(random);
    int64_t changed = 0;
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      const float x = float_of(bits << 16);
      const bf16 rounded = round_at_random(x, draw);
      changed += std::isnan(x) ? !std::isnan(static_cast<float>(rounded)) : rounded.bits != bits;
    }
    CHECK(changed == 0);
    CHECK(std::isnan(static_cast<float>(round_at_random(float_of(0x7F800001u), draw))));  // payload in the lost bits
    CHECK(std::isnan(static_cast<float>(round_at_random(float_of(0xFFFFFFFFu), draw))));
    CHECK(std::isfinite(static_cast<float>(round_at_random(float_of(0x7F7F0000u), draw))));  // the greatest bf16
    CHECK(std::isfinite(static_cast<float>(round_at_random(float_of(0xFF7EFFFFu), draw))));
  }
  // Beyond it the upper neighbour is infinity.
  CHECK(std::isinf(static_cast<float>(round_at_random(std::numeric_limits<float>::max(), 1))));
  CHECK(std::isfinite(static_cast<float>(round_at_random(std::numeric_limits<float>::max(), 0))));
}
