// Sums over whole tensors: they are correct, have a fixed order, and count values that are not finite.
#include "support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Sizes around one block of 16384 elements, and one beyond 256 blocks.
const std::vector<int64_t> kCounts = {0, 1, 3, 83, 16383, 16385, 100'003, 256 * 16384 + 12'345};

Values statistics_of(TestBackend& cpu, const HostTensor& x) {
  HostTensor out(DType::kF64, {kStatistics}, {7, 7, 7, 7});
  cpu.ops().statistics(*cpu.stream, {x, out});
  return out.values();
}

// Statistics::magnitudes by the definition of ops.h, from the values in double.
Values expected_magnitudes(const Values& values) {
  Values counts(kMagnitudeBins);
  for (const double x : values) {
    if (!std::isfinite(x)) continue;
    const double exponent = x == 0 ? 0 : std::floor(std::log2(std::abs(x)));
    const double bin = std::clamp(exponent - kLowestMagnitude + 1, 1.0, static_cast<double>(kMagnitudeBins - 1));
    ++counts[x == 0 ? 0 : static_cast<size_t>(bin)];
  }
  return counts;
}

Values magnitudes_of(TestBackend& cpu, const Tensor& x, const Tensor& divisor = {}) {
  HostTensor out(DType::kF64, {kStatistics});
  HostTensor magnitudes(DType::kF64, {kMagnitudeBins}, Values(kMagnitudeBins, 7));
  cpu.ops().statistics(*cpu.stream, {.x = x, .out = out, .magnitudes = magnitudes, .divisor = divisor});
  return magnitudes.values();
}

uint64_t checksum_of(TestBackend& cpu, const Tensor& x, uint64_t before = 0) {
  HostTensor sum(DType::kI32, {2});
  std::string bytes(sizeof before, '\0');
  std::memcpy(bytes.data(), &before, sizeof before);
  write_bytes(sum, bytes);
  cpu.ops().checksum(*cpu.stream, {x, sum});
  uint64_t after = 0;
  std::memcpy(&after, sum.bytes().data(), sizeof after);
  return after;
}

// Checksum::sum by the formula of ops.h.
uint64_t expected_checksum(const std::string& bytes, size_t size) {
  uint64_t sum = 0;
  for (size_t i = 0; i * size < bytes.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * size, size);
    sum += (2 * i + 1) * bits;
  }
  return sum;
}

}  // namespace

TEST_CASE("sum_squares adds the squares to its sum and to no other") {
  TestBackend cpu;
  for (const int64_t n : kCounts) {
    const HostTensor x = random_tensor(DType::kF32, {n}, "x");
    HostTensor sums(DType::kF64, {kStepSums}, {1, 2, 3, 4});
    cpu.ops().sum_squares(*cpu.stream, {x, sums});
    const Values v = x.values(), out = sums.values();
    CHECK(out[kSumSquaredGradients] == Approx(4 + dot(v, v)).epsilon(1e-12));
    CHECK((out[kSumLoss] == 1 && out[kSumZLoss] == 2 && out[kSumTargets] == 3));
  }
}

TEST_CASE("sum_squares neither overflows nor loses small values, and shows what is not finite") {
  TestBackend cpu;
  const auto squares = [&](const Values& v) {
    const HostTensor x(DType::kF32, {static_cast<int64_t>(v.size())}, v);
    HostTensor sums(DType::kF64, {kStepSums});
    cpu.ops().sum_squares(*cpu.stream, {x, sums});
    return sums.values()[kSumSquaredGradients];
  };
  CHECK(squares({0x1p100, 0, 0, 0, 0x1p100}) == 0x1p201);
  CHECK(squares({0x1p-100, 0x1p-100}) == 0x1p-199);
  CHECK(squares({1, kInf, 1}) == kInf);
  CHECK(std::isnan(squares({1, kNaN, 1})));
}

TEST_CASE("statistics finds the extremes and the squares of a tensor") {
  TestBackend cpu;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t n : kCounts) {
      if (n == 0) continue;
      const HostTensor x = random_tensor(dtype, {n}, "x");
      const Values v = x.values(), out = statistics_of(cpu, x);
      CHECK(out[kMin] == *std::min_element(v.begin(), v.end()));
      CHECK(out[kMax] == *std::max_element(v.begin(), v.end()));
      CHECK(out[kSquares] == Approx(dot(v, v)).epsilon(1e-12));
      CHECK(out[kNonFinite] == 0);
    }
  }
}

TEST_CASE("statistics counts what is not finite and leaves it out of the rest") {
  TestBackend cpu;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t n : {5, 83, 40'000}) {
      Values v(static_cast<size_t>(n), 0.5);
      v[0] = kNaN;
      v[1] = -3;
      v[2] = kInf;
      v[3] = 2;
      v.back() = -kInf;
      CHECK(statistics_of(cpu, HostTensor(dtype, {n}, v)) == Values{-3, 2, 13 + 0.25 * static_cast<double>(n - 5), 3});
    }
    CHECK(statistics_of(cpu, HostTensor(dtype, {3}, {kNaN, kInf, -kInf})) == Values{kInf, -kInf, 0, 3});
    CHECK(statistics_of(cpu, HostTensor(dtype, {0})) == Values{kInf, -kInf, 0, 0});
  }
  const HostTensor huge(DType::kF32, {2}, {std::numeric_limits<float>::max(), -std::numeric_limits<float>::max()});
  CHECK(statistics_of(cpu, huge)[kNonFinite] == 0);
}

TEST_CASE("statistics counts magnitudes by powers of two: zeros, the ends of a bin, what lies beyond the bins") {
  TestBackend cpu;
  const double most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
  Values v = {0, -0.0, 1, -1, 2, 0x1p-48, -0x1p-49, 0x1p-126, 0x1p14, 0x1.8p14, 0x1p15, 0x1p100, kNaN, kInf, -kInf};
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const HostTensor x(dtype, {static_cast<int64_t>(v.size())}, v);
    const Values counts = magnitudes_of(cpu, x);
    CHECK(counts == expected_magnitudes(v));
    CHECK((counts[0] == 2 && counts[1] == 3 && counts[49] == 2 && counts[50] == 1 && counts[63] == 4));
  }
  v = {most, -most, least, -least, std::nextafter(2.0f, 0.0f), std::nextafter(1.0f, 0.0f), 0x1p-127, 0};
  CHECK(magnitudes_of(cpu, HostTensor(DType::kF32, {8}, v)) == expected_magnitudes(v));
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t n : kCounts) {
      HostTensor x = random_tensor(dtype, {n + 3}, "x", 0.02);
      CHECK(magnitudes_of(cpu, x.view().flat(1, n + 1)) == expected_magnitudes([&] {
              const Values all = x.values();
              return Values(all.begin() + 1, all.end() - 2);
            }()));
    }
  }
}

TEST_CASE("statistics with a divisor are those of the quotients, as AdamW forms them") {
  TestBackend cpu;
  const HostTensor divisor(DType::kF64, {1}, {12 * 16});
  const float scale = static_cast<float>(1.0 / (12 * 16));
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t n : {1, 83, 100'003}) {
      HostTensor x = random_tensor(dtype, {n}, "x", 100);
      Values v = x.values();
      v[0] = kInf;
      x.set(v);
      for (double& value : v) value = static_cast<double>(scale * static_cast<float>(value));
      HostTensor out(DType::kF64, {kStatistics});
      cpu.ops().statistics(*cpu.stream, {.x = x, .out = out, .divisor = divisor});
      const Values found = out.values();
      CHECK(magnitudes_of(cpu, x, divisor) == expected_magnitudes(v));
      CHECK(found[kNonFinite] == 1);
      v.erase(v.begin());
      if (v.empty()) continue;
      CHECK(found[kMin] == *std::min_element(v.begin(), v.end()));
      CHECK(found[kMax] == *std::max_element(v.begin(), v.end()));
      CHECK(found[kSquares] == Approx(dot(v, v)).epsilon(1e-12));
    }
  }
}

TEST_CASE("sums take slices that start anywhere, and no element beside them") {
  TestBackend cpu;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const HostTensor whole = random_tensor(dtype, {50}, "x");
    const Values all = whole.values();
    for (int64_t begin = 0; begin < 10; ++begin) {
      for (int64_t end = begin + 1; end <= 50; end += 3) {
        const Tensor x = whole.view().flat(begin, end);
        const Values v(all.begin() + begin, all.begin() + end);
        HostTensor out(DType::kF64, {kStatistics}), sums(DType::kF64, {kStepSums});
        cpu.ops().statistics(*cpu.stream, {x, out});
        CHECK(out.values()[kMin] == *std::min_element(v.begin(), v.end()));
        CHECK(out.values()[kMax] == *std::max_element(v.begin(), v.end()));
        CHECK(out.values()[kSquares] == Approx(dot(v, v)).epsilon(1e-12));
        if (dtype == DType::kBF16) continue;
        cpu.ops().sum_squares(*cpu.stream, {x, sums});
        CHECK(sums.values()[kSumSquaredGradients] == Approx(dot(v, v)).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("checksum adds the weighted patterns of the elements, of any slice, to what is there") {
  TestBackend cpu;
  constexpr uint64_t kBefore = 0xFEDCBA9876543210;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const auto size = static_cast<size_t>(size_of(dtype));
    for (const int64_t n : kCounts) {
      const HostTensor x = random_tensor(dtype, {n + 3}, "x");
      const Tensor slice = x.view().flat(1, n + 1);
      const std::string bytes = x.bytes().substr(size, size * static_cast<size_t>(n));
      CHECK(checksum_of(cpu, slice, kBefore) == kBefore + expected_checksum(bytes, size));
    }
  }
}

TEST_CASE("checksum shows each flipped bit, and two elements that change places") {
  TestBackend cpu;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const auto size = static_cast<size_t>(size_of(dtype));
    HostTensor x = random_tensor(dtype, {40'000}, "x");
    const std::string sound = x.bytes();
    const uint64_t expected = checksum_of(cpu, x);
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      for (const size_t element : {size_t{0}, size_t{16'384}, size_t{39'999}}) {
        std::string flipped = sound;
        flipped[element * size + bit / 8] = static_cast<char>(flipped[element * size + bit / 8] ^ (1 << bit % 8));
        write_bytes(x, flipped);
        CHECK(checksum_of(cpu, x) != expected);
      }
    }
    write_bytes(x, sound.substr(size, size) + sound.substr(0, size) + sound.substr(2 * size));
    CHECK(checksum_of(cpu, x) != expected);
  }
}

TEST_CASE("sums over a tensor have the same bits for any number of threads", "[threads]") {
  TestBackend cpu;
  const HostTensor x = random_tensor(DType::kF32, {300'007}, "x");
  const HostTensor narrow = random_tensor(DType::kBF16, {300'007}, "x");
  require_thread_invariance([&] {
    HostTensor sums(DType::kF64, {kStepSums}), a(DType::kF64, {kStatistics}), b(DType::kF64, {kStatistics});
    HostTensor magnitudes(DType::kF64, {kMagnitudeBins});
    cpu.ops().sum_squares(*cpu.stream, {x, sums});
    cpu.ops().statistics(*cpu.stream, {.x = x, .out = a, .magnitudes = magnitudes});
    cpu.ops().statistics(*cpu.stream, {narrow, b});
    return sums.bytes() + a.bytes() + b.bytes() + magnitudes.bytes();
  });
}
