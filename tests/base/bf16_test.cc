#include "base/bf16.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace tokamak;

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
