#include "base/rng.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "base/rng_formulas.h"

using namespace tokamak;

TEST_CASE("Philox4x32-10 gives the known answers of its authors (Random123, kat_vectors)") {
  using Four = std::array<uint32_t, 4>;
  CHECK(rng_formulas::philox4x32({0, 0, 0, 0}, {0, 0}) == Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(rng_formulas::philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(rng_formulas::philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("the logarithm by IEEE operations agrees with libm's") {
  for (double x = 1e-12; x < 1e12; x *= 1.37) {
    CHECK(log_ieee(x) == Approx(std::log(x)).epsilon(1e-14).margin(1e-15));
  }
}

TEST_CASE("the normal quantile inverts the normal distribution function") {
  for (double p : {1e-9, 1e-5, 0.001, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999, 1 - 1e-9}) {
    const double z = normal_quantile(p);
    const double back = 0.5 * std::erfc(-z / std::sqrt(2.0));
    CHECK(back == Approx(p).epsilon(1e-12));
  }
}

TEST_CASE("normal deviates have the right moments") {
  constexpr int64_t kCount = 400'000;
  std::vector<float> x(kCount);
  RandomStream(7, "moments").fill_normal(x.data(), kCount, 0, 3.0, 2.0);
  double mean = 0, square = 0, fourth = 0;
  for (const float v : x) mean += v;
  mean /= kCount;
  for (const float v : x) {
    square += (v - mean) * (v - mean);
    fourth += std::pow(v - mean, 4);
  }
  CHECK(mean == Approx(3.0).margin(0.02));
  CHECK(square / kCount == Approx(4.0).margin(0.04));
  CHECK(fourth / kCount == Approx(3 * 16.0).margin(1.0));  // kurtosis 3
}

TEST_CASE("any part of a tensor can be drawn alone, and has the same bits") {
  const RandomStream stream(42, "model.embed_tokens.weight");
  std::vector<float> whole(1003);
  stream.fill_normal(whole.data(), 1003, 0, 0.0, 0.02);
  for (const uint64_t first : {0, 1, 2, 3, 4, 5, 511, 1000}) {
    std::vector<float> part(1003 - first);
    stream.fill_normal(part.data(), static_cast<int64_t>(part.size()), first, 0.0, 0.02);
    CHECK(std::equal(part.begin(), part.end(), whole.begin() + static_cast<int64_t>(first)));
  }
}

TEST_CASE("streams differ by seed and by name") {
  CHECK(RandomStream(1, "a").word(0) != RandomStream(2, "a").word(0));
  CHECK(RandomStream(1, "a").word(0) != RandomStream(1, "b").word(0));
  CHECK(RandomStream(1, "a").word(0) != RandomStream(uint64_t{1} << 32, "a").word(0));
}
