// Casts, zeros, fills and random contents.
#include "support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const std::vector<int64_t> kCounts = {0, 1, 83, 16385, 70'001};

// The expected bytes of random_normal, of mean 0.5 and deviation 0.02.
std::string normal_bytes(const std::string& name, int64_t count, int64_t first) {
  std::string out(static_cast<size_t>(count) * sizeof(float), '\0');
  RandomStream(9, name).fill_normal(reinterpret_cast<float*>(out.data()), count, static_cast<uint64_t>(first), 0.5,
                                    0.02);
  return out;
}

}  // namespace

TEST_CASE("cast rounds to nearest, copies what needs no rounding, and keeps infinities") {
  TestBackend cpu;
  for (const int64_t n : kCounts) {
    for (const DType from : {DType::kF32, DType::kBF16}) {
      for (const DType to : {DType::kF32, DType::kBF16}) {
        const HostTensor src = random_tensor(from, {n}, "src");
        HostTensor dst = random_tensor(to, {n}, "before");
        cpu.ops().cast(*cpu.stream, {src, dst});
        CHECK((dst.bytes() == HostTensor(to, {n}, src.values()).bytes()));
      }
    }
  }
  const HostTensor src(DType::kF32, {3}, {kInf, -kInf, std::nan("")});
  HostTensor dst(DType::kBF16, {3});
  cpu.ops().cast(*cpu.stream, {src, dst});
  CHECK((dst.values()[0] == kInf && dst.values()[1] == -kInf && std::isnan(dst.values()[2])));
}

TEST_CASE("cast accumulates into f32") {
  TestBackend cpu;
  for (const int64_t n : kCounts) {
    for (const DType from : {DType::kF32, DType::kBF16}) {
      const HostTensor src = random_tensor(from, {n}, "src"), before = random_tensor(DType::kF32, {n}, "before");
      HostTensor dst = before;
      cpu.ops().cast(*cpu.stream, {src, dst, Write::kAccumulate});
      Values expected = before.values();
      const Values added = src.values();
      for (size_t i = 0; i < expected.size(); ++i) expected[i] += added[i];
      CHECK((dst.bytes() == HostTensor(DType::kF32, {n}, expected).bytes()));
    }
  }
}

TEST_CASE("average moves towards x by its weight, all the way with 1 and not at all with 0") {
  TestBackend cpu;
  for (const int64_t n : kCounts) {
    for (const double weight : {0.0, 1e-6, 0.3, 0.5, 1.0}) {
      INFO(n << " elements, weight " << weight);
      const HostTensor x = random_tensor(DType::kF32, {n}, "x"), before = random_tensor(DType::kF32, {n}, "before");
      const HostTensor average = before;
      cpu.ops().average(*cpu.stream, {x, average, weight});
      const Values from = before.values(), to = x.values(), after = average.values();
      double worst = 0;  // relative to the larger of the two, from which a result near 0 is a difference
      for (size_t i = 0; i < from.size(); ++i) {
        const double error = after[i] - (from[i] + weight * (to[i] - from[i]));
        worst = std::max(worst, std::abs(error) / std::max(std::abs(from[i]), std::abs(to[i])));
      }
      CHECK(worst < 3 * 0x1p-24);
      if (weight == 0) CHECK((average.bytes() == before.bytes()));
      CHECK((x.values() == to));
    }
  }
}

TEST_CASE("fill writes its value in every dtype and touches nothing beside") {
  TestBackend cpu;
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64, DType::kI32}) {
    for (const double value : {0.0, -0.0, 3.0, -7.0}) {
      for (const int64_t n : kCounts) {
        const HostTensor x(dtype, {n + 2}, Values(static_cast<size_t>(n + 2), 1));
        cpu.ops().fill(*cpu.stream, {x.view().flat(1, n + 1), value});
        Values expected(static_cast<size_t>(n + 2), value);
        expected.front() = expected.back() = 1;
        CHECK((x.bytes() == HostTensor(dtype, {n + 2}, expected).bytes()));
      }
    }
  }
}

TEST_CASE("fill accepts tensors of any rank") {
  TestBackend cpu;
  const HostTensor x(DType::kF32, {3, 5, 7});
  cpu.ops().fill(*cpu.stream, {x, 2.5});
  CHECK(x.values() == Values(105, 2.5));
}

TEST_CASE("random_normal is the RandomStream, at any split and for any number of threads") {
  TestBackend cpu;
  const int64_t n = 2 * 16384 + 1003;
  const std::string whole = normal_bytes("model.embed_tokens.weight", n, 0);
  for (const int64_t first : {int64_t{0}, int64_t{1}, int64_t{4099}, int64_t{16384}, n - 3, n}) {
    HostTensor part(DType::kF32, {n - first});
    const RandomNormal args{part, 9, "model.embed_tokens.weight", first, 0.5, 0.02};
    require_thread_invariance([&] {
      part.set(Values(static_cast<size_t>(n - first)));
      cpu.ops().random_normal(*cpu.stream, args);
      return part.bytes();
    });
    CHECK((part.bytes() == whole.substr(static_cast<size_t>(first) * 4)));
  }
  const int64_t far = (int64_t{1} << 40) + 3;  // the Philox block exceeds 32 bits, too
  const HostTensor actual(DType::kF32, {1024});
  cpu.ops().random_normal(*cpu.stream, {actual, 9, "x", far, 0.5, 0.02});
  CHECK((actual.bytes() == normal_bytes("x", 1024, far)));
}

TEST_CASE("casts give the same bits for any number of threads", "[threads]") {
  TestBackend cpu;
  const HostTensor src = random_tensor(DType::kF32, {70'001}, "src");
  require_thread_invariance([&] {
    HostTensor narrow(DType::kBF16, {70'001}), copy(DType::kF32, {70'001}), sum = src;
    cpu.ops().cast(*cpu.stream, {src, narrow});
    cpu.ops().cast(*cpu.stream, {src, copy});
    cpu.ops().cast(*cpu.stream, {narrow, sum, Write::kAccumulate});
    return narrow.bytes() + copy.bytes() + sum.bytes();
  });
}

TEST_CASE("soft_cap bounds values by cap tanh(x / cap), and keeps NaN") {
  TestBackend cpu;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t n : kCounts) {
      for (const float cap : {0.5f, 30.0f}) {
        const HostTensor given = random_tensor(dtype, {n + 2}, "x", 20.0), x = given;
        cpu.ops().soft_cap(*cpu.stream, {.x = x.view().flat(1, n + 1), .cap = cap});
        Values expected = given.values();
        for (size_t i = 1; i + 1 < expected.size(); ++i) {
          expected[i] = double{cap} * std::tanh(expected[i] / double{cap});
        }
        CHECK(max_error_before_rounding(x, expected) < 3e-7);
      }
    }
  }
  const HostTensor x(DType::kF32, {4}, {NAN, kInf, -kInf, 1e30});
  cpu.ops().soft_cap(*cpu.stream, {.x = x, .cap = 2.0f});
  CHECK(std::isnan(x.values()[0]));
  CHECK((x.values()[1] == 2 && x.values()[2] == -2 && x.values()[3] == 2));
}

TEST_CASE("zero_non_finite writes a zero over what is not finite, and leaves all else to the bit") {
  TestBackend cpu;
  const Values specials = {NAN, kInf, -kInf, -0.0, 3e38, 1e-40, 7.5};
  for (const int64_t n : kCounts) {
    Values values(static_cast<size_t>(n + 2));
    for (size_t i = 0; i < values.size(); ++i) values[i] = specials[i % specials.size()];
    values.front() = values.back() = kInf;  // beside it
    const HostTensor x(DType::kF32, {n + 2}, values);
    cpu.ops().zero_non_finite(*cpu.stream, {x.view().flat(1, n + 1)});
    Values expected = values;
    for (size_t i = 1; i + 1 < expected.size(); ++i) {
      if (!std::isfinite(expected[i])) expected[i] = 0;
    }
    CHECK((x.bytes() == HostTensor(DType::kF32, {n + 2}, expected).bytes()));
  }
}
