// GEMMs of every transposition, dtype and added operand against float64, and their bits for any number of threads.
#include <numeric>

#include "support.h"
#include "tensor_core.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

constexpr Transpose kNo = Transpose::kNo, kYes = Transpose::kYes;

struct Sizes {
  int64_t m, n, k;
};
const std::vector<Sizes> kSizes = {{1, 1, 1},     {1, 29, 3},      {37, 1, 5},     {37, 29, 6},
                                   {16, 64, 128}, {65, 33, 17},    {70, 96, 64},   {13, 11, 2101},
                                   {5, 40, 4100}, {129, 257, 100}, {1030, 3, 2000}};

// As in generation, where few rows have their own code: sizes around vectors of 4 to 32 terms and blocks of
// results.
const std::vector<Sizes> kFewRows = {{1, 16, 32}, {1, 45, 1},   {2, 17, 31},  {3, 50, 33}, {4, 5, 64},  {5, 100, 97},
                                     {6, 33, 15}, {7, 16, 700}, {8, 48, 130}, {8, 3, 63},  {9, 40, 65}, {1, 1000, 769}};

enum class AddedOperand { kNothing, kOutput, kResidual, kBias, kResidualAndBias };
bool has_bias(AddedOperand kind) { return kind == AddedOperand::kBias || kind == AddedOperand::kResidualAndBias; }

// alpha and residual_scale: any factors whose ratio f32 rounds.
struct Scales {
  float alpha = 1, residual = 1;
};
constexpr Scales kScales{2.0315f, -4.775f};

struct Types {
  DType in, out;
};
const std::vector<Types> kTypes = {
    {DType::kF32, DType::kF32}, {DType::kBF16, DType::kBF16}, {DType::kBF16, DType::kF32}};

struct Problem {
  Sizes s;
  Types types;
  Transpose ta, tb;

  HostTensor a() const { return random_tensor(types.in, ta == kYes ? Shape{s.k, s.m} : Shape{s.m, s.k}, "a"); }
  HostTensor b() const { return random_tensor(types.in, tb == kYes ? Shape{s.n, s.k} : Shape{s.k, s.n}, "b"); }
  HostTensor bias() const { return random_tensor(types.out, {s.n}, "bias", 3.0); }
  HostTensor added() const { return random_tensor(types.out, {s.m, s.n}, "added", 3.0); }
};

// (M, N): sum() of the K products of each element.
template <class Sum>
Values product_by(const Problem& p, const Values& a, const Values& b, const Sum& sum) {
  Values out, products(static_cast<size_t>(p.s.k));
  for (int64_t i = 0; i < p.s.m; ++i) {
    for (int64_t j = 0; j < p.s.n; ++j) {
      for (int64_t k = 0; k < p.s.k; ++k) {
        products[static_cast<size_t>(k)] = a[static_cast<size_t>(p.ta == kYes ? k * p.s.m + i : i * p.s.k + k)] *
                                           b[static_cast<size_t>(p.tb == kYes ? j * p.s.k + k : k * p.s.n + j)];
      }
      out.push_back(sum(products));
    }
  }
  return out;
}

Values product64(const Problem& p, const Values& a, const Values& b) {
  return product_by(p, a, b, [](const Values& x) { return std::accumulate(x.begin(), x.end(), 0.0); });
}

// Relative to the greatest result. f32 rounds each partial sum to nearest. The signs of these errors vary, so that they
// add up to a few units in the last place of the greatest partial sum. bf16 products are exact in f32.
constexpr double kRounding = 2e-6;

// A tensor core cuts off where f32 would round (tensor_core.h), once for 16 products, always towards zero. One cut
// takes from 0 to 2^-23 of the partial sum, 2^-24 in the mean, and K / 16 of them add up. Hardly a partial sum is
// greater than the greatest result, and on average it is half of that. So the bound holds for an A100, too, which cuts
// once for 8 products. Losses within the products have the products' signs and add up as roundings do.
double tensor_core_bound(int64_t k) { return kRounding + static_cast<double>(k) / 16 * std::ldexp(1.0, -24); }

struct Operands {
  explicit Operands(const Problem& p) : a(p.a()), b(p.b()), added(p.added()), bias(p.bias()) {}

  HostTensor a, b;
  HostTensor added;  // what c, or the residual, holds before
  HostTensor bias;
};

// The GEMM on the CPU backend.
HostTensor run(TestBackend& cpu, const Problem& p, const Operands& given, AddedOperand kind, Scales scales = {}) {
  const HostTensor &added = given.added, &bias = given.bias;
  HostTensor c = kind == AddedOperand::kOutput ? added : random_tensor(p.types.out, {p.s.m, p.s.n}, "rubbish", 100.0);
  Gemm gemm{.a = given.a, .b = given.b, .c = c, .trans_a = p.ta, .trans_b = p.tb};
  if (kind == AddedOperand::kOutput) gemm.write = Write::kAccumulate;
  if (kind == AddedOperand::kResidual || kind == AddedOperand::kResidualAndBias) gemm.residual = added;
  if (has_bias(kind)) gemm.bias = bias;
  gemm.alpha = scales.alpha;
  gemm.residual_scale = scales.residual;
  cpu.ops().gemm(*cpu.stream, gemm);
  return c;
}

void check(TestBackend& cpu, const Problem& p, AddedOperand kind, Scales scales = {}) {
  INFO("(" << p.s.m << ", " << p.s.n << ", " << p.s.k << ") transposed " << (p.ta == kYes) << (p.tb == kYes) << " "
           << name_of(p.types.in) << " to " << name_of(p.types.out) << ", added " << static_cast<int>(kind) << " times "
           << scales.residual << ", alpha " << scales.alpha);
  const Operands given(p);
  Values expected = product64(p, given.a.values(), given.b.values());
  for (double& x : expected) x *= double{scales.alpha};
  if (has_bias(kind)) {
    const Values bias = given.bias.values();
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += bias[i % bias.size()];
  }
  if (kind != AddedOperand::kNothing && kind != AddedOperand::kBias) {
    const Values added = given.added.values();
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += double{scales.residual} * added[i];
  }
  const bool by_tensor_cores = p.types.in == DType::kBF16 && !under_test().backend.device->uses_host_memory();
  const double bound = by_tensor_cores ? tensor_core_bound(p.s.k) : kRounding;
  CHECK(max_error_before_rounding(run(cpu, p, given, kind, scales), expected) < bound);
}

}  // namespace

TEST_CASE("the bound of bf16 GEMMs holds for tensor cores, with little to spare, and for no wrong sum", "[cpu]") {
  const Types types{DType::kBF16, DType::kF32};
  for (const Sizes& s : {Sizes{13, 11, 2101}, Sizes{5, 40, 4100}}) {
    const double bound = tensor_core_bound(s.k);
    double worst = 0;
    for (const Transpose ta : {kNo, kYes}) {
      for (const Transpose tb : {kNo, kYes}) {
        INFO("K " << s.k << " transposed " << (ta == kYes) << (tb == kYes));
        const Problem p{s, types, ta, tb};
        const Values a = p.a().values(), b = p.b().values(), exact = product64(p, a, b);
        const auto error = [&](const TensorCore& core, int64_t dropped) {
          const Values sums = product_by(p, a, b, [&](const Values& x) {
            return sum_by_tensor_core({x.data(), x.size() - static_cast<size_t>(dropped)}, core);
          });
          return max_relative_error(sums, exact).value;
        };
        const double ampere = error(kAmpere, 0), hopper = error(kHopper, 0);
        CHECK(std::max(ampere, hopper) < bound);
        worst = std::max({worst, ampere, hopper});
        TensorCore coarse = kHopper;
        coarse.accumulator_bits = 8;  // bf16
        CHECK(error(coarse, 0) > 100 * bound);
        coarse.accumulator_bits = 14;  // as in FP8's GEMMs
        CHECK(error(coarse, 0) > 100 * bound);
        CHECK(error(kHopper, s.k % 16) > 100 * bound);  // the tail of K
        CHECK(error(kHopper, 1) > 100 * bound);
      }
    }
    CHECK(worst > bound / 4);
    CHECK(worst > kRounding);
  }
}

TEST_CASE("gemm equals the float64 product of its operands for every transposition, size and dtype") {
  TestBackend cpu;
  for (const Types& types : kTypes) {
    for (const Sizes& s : kSizes) {
      for (const Transpose ta : {kNo, kYes}) {
        for (const Transpose tb : {kNo, kYes}) check(cpu, {s, types, ta, tb}, AddedOperand::kNothing);
      }
    }
  }
}

TEST_CASE("gemm adds a residual and rounds once") {
  TestBackend cpu;
  for (const Types& types : kTypes) {
    for (const Sizes& s : kSizes) {
      for (const Transpose t : {kNo, kYes}) {
        for (const Transpose tb : {kNo, kYes}) check(cpu, {s, types, t, tb}, AddedOperand::kResidual);
      }
    }
  }
}

TEST_CASE("gemm adds a residual and a bias and rounds once") {
  TestBackend cpu;
  for (const Types& types : kTypes) {
    for (const std::vector<Sizes>& sizes : {kSizes, kFewRows}) {
      for (const Sizes& s : sizes) {
        for (const Transpose tb : {kNo, kYes}) check(cpu, {s, types, kNo, tb}, AddedOperand::kResidualAndBias);
      }
    }
  }
}

TEST_CASE("gemm adds a bias to each row and rounds once, wherever the bias starts") {
  TestBackend cpu;
  for (const Types& types : kTypes) {
    for (const Sizes& s : kSizes) {
      for (const Transpose ta : {kNo, kYes}) {
        for (const Transpose tb : {kNo, kYes}) check(cpu, {s, types, ta, tb}, AddedOperand::kBias);
      }
    }
    const Problem p{{37, 29, 6}, types, kNo, kYes};
    const HostTensor a = p.a(), b = p.b(), memory = random_tensor(types.out, {30}, "bias");
    HostTensor c(types.out, {37, 29}), c2(types.out, {37, 29}), bias(types.out, {29});
    const Tensor skewed = memory.view().flat(1, 30);
    write_bytes(bias, bytes_of(skewed));
    cpu.ops().gemm(*cpu.stream, {.a = a, .b = b, .c = c, .bias = skewed, .trans_b = kYes});
    cpu.ops().gemm(*cpu.stream, {.a = a, .b = b, .c = c2, .bias = bias, .trans_b = kYes});
    CHECK((c.bytes() == c2.bytes()));
  }
}

TEST_CASE("gemm scales the product and the residual, and rounds once", "[large]") {
  TestBackend cpu;
  for (const Types& types : kTypes) {
    for (const std::vector<Sizes>& sizes : {kSizes, kFewRows}) {
      for (const Sizes& s : sizes) {
        for (const Transpose ta : {kNo, kYes}) {
          for (const Transpose tb : {kNo, kYes}) {
            const Problem p{s, types, ta, tb};
            check(cpu, p, AddedOperand::kNothing, {kScales.alpha, 1});
            check(cpu, p, AddedOperand::kResidual, {kScales.alpha, 1});
            check(cpu, p, AddedOperand::kResidual, {1, kScales.residual});
            check(cpu, p, AddedOperand::kResidual, kScales);
          }
        }
      }
    }
  }
}

TEST_CASE("gemm accumulates into f32") {
  TestBackend cpu;
  for (const DType in : {DType::kF32, DType::kBF16}) {
    for (const Sizes& s : kSizes) {
      for (const Transpose ta : {kNo, kYes}) {
        for (const Transpose tb : {kNo, kYes}) check(cpu, {s, {in, DType::kF32}, ta, tb}, AddedOperand::kOutput);
      }
    }
  }
}

TEST_CASE("gemm of few rows equals the float64 product, with every added operand") {
  TestBackend cpu;
  for (const Types& types : kTypes) {
    for (const Sizes& s : kFewRows) {
      for (const AddedOperand kind : {AddedOperand::kNothing, AddedOperand::kResidual, AddedOperand::kBias}) {
        check(cpu, {s, types, kNo, kYes}, kind);
      }
      if (types.out == DType::kF32) check(cpu, {s, types, kNo, kYes}, AddedOperand::kOutput);
    }
  }
}

TEST_CASE("gemm of few rows gives each row the same bits as a gemm of that row only", "[cpu]") {
  TestBackend cpu;
  for (const Types& types : kTypes) {
    for (const int64_t k : {64, 769}) {
      const HostTensor a = random_tensor(types.in, {8, k}, "a"), b = random_tensor(types.in, {101, k}, "b");
      const auto bits = [&](int64_t begin, int64_t end) {
        HostTensor c(types.out, {end - begin, 101});
        cpu.ops().gemm(*cpu.stream, {.a = a.view().rows(begin, end), .b = b, .c = c, .trans_b = kYes});
        return c.bytes();
      };
      for (int64_t rows = 1; rows <= 8; ++rows) {
        std::string alone;
        for (int64_t r = 0; r < rows; ++r) alone += bits(r, r + 1);
        INFO(rows << " rows of " << k << " terms, " << name_of(types.in) << " to " << name_of(types.out));
        CHECK((bits(0, rows) == alone));
      }
    }
  }
}

TEST_CASE("gemm of no rows does nothing") {
  TestBackend cpu;
  const HostTensor b = random_tensor(DType::kF32, {3, 4}, "b");
  HostTensor none(DType::kF32, {0, 3}), out(DType::kF32, {0, 4});
  CHECK_NOTHROW(cpu.ops().gemm(*cpu.stream, {.a = none, .b = b, .c = out}));
}

TEST_CASE("gemm gives the same bits for any number of threads, also for long sums with small outputs",
          "[threads][large]") {
  const std::vector<Sizes> sizes = {{64, 64, 32768}, {64, 64, 2048}, {1, 64, 4096},  {37, 29, 4100}, {128, 128, 4096},
                                    {256, 192, 300}, {100, 384, 96}, {1, 3000, 200}, {8, 1001, 300}};
  for (const Types& types : kTypes) {
    for (const Sizes& s : sizes) {
      for (const Transpose ta : {kNo, kYes}) {
        for (const Transpose tb : {kNo, kYes}) {
          INFO("(" << s.m << ", " << s.n << ", " << s.k << ") transposed " << (ta == kYes) << (tb == kYes) << " "
                   << name_of(types.in) << " to " << name_of(types.out));
          const Problem p{s, types, ta, tb};
          const Operands given(p);
          require_thread_invariance([&] {
            TestBackend cpu;  // anew: kernels are compiled for a number of threads
            return run(cpu, p, given, types.out == DType::kF32 ? AddedOperand::kOutput : AddedOperand::kResidual)
                       .bytes() +
                   run(cpu, p, given, AddedOperand::kBias).bytes() +
                   run(cpu, p, given, AddedOperand::kResidual, kScales).bytes();
          });
        }
      }
    }
  }
}
