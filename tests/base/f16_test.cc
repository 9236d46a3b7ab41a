#include "base/f16.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace tokamak;

TEST_CASE("every half is its value's bits again") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = f16_value(half);
    if (std::isnan(value)) {
      CHECK((f16_bits(value) & 0x7C00) == 0x7C00);
      CHECK((f16_bits(value) & 0x3FF) != 0);
    } else if (f16_bits(value) != half) {
      FAIL("bits " << bits << " became " << f16_bits(value));
    }
  }
  CHECK(f16_value(0x3C00) == 1.0f);
  CHECK(f16_value(0x0001) == std::ldexp(1.0f, -24));
  CHECK(f16_value(0x7BFF) == 65504.0f);
  CHECK(f16_value(0xC000) == -2.0f);
}

// The midpoint of two adjacent halves is a float. It rounds to even; the floats beside it round to the nearer half.
TEST_CASE("a float rounds to the nearest half, ties to even") {
  for (uint16_t low = 0; low < 0x7BFF; ++low) {
    const auto high = static_cast<uint16_t>(low + 1);
    const float middle = (f16_value(low) + f16_value(high)) / 2;
    const uint16_t even = low % 2 == 0 ? low : high;
    const bool right = f16_bits(middle) == even && f16_bits(-middle) == (even | 0x8000) &&
                       f16_bits(std::nextafter(middle, 0.0f)) == low && f16_bits(std::nextafter(middle, 1e6f)) == high;
    if (!right) FAIL("between " << low << " and " << high);
  }
  CHECK(f16_bits(65519.996f) == 0x7BFF);
  CHECK(f16_bits(65520.0f) == 0x7C00);
  CHECK(f16_bits(-1e30f) == 0xFC00);
  CHECK(f16_bits(std::numeric_limits<float>::infinity()) == 0x7C00);
}
