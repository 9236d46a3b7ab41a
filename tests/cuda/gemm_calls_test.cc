// CudaGemm's calls to cuBLASLt. The descriptors are the real library's. The GEMM, the heuristic and CUDA's runtime are
// stubs (gemm_stubs.h), so this runs without a GPU.
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/bf16.h"
#include "base/error.h"
#include "base/log.h"
#include "cuda/gemm/gemm.h"
#include "cuda/gemm_stubs.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

// Small integers, so that every sum is exact in every type.
class Operand {
 public:
  Operand(int64_t rows, int64_t columns, DType dtype, int seed)
      : memory_(static_cast<std::byte*>(
            std::aligned_alloc(256, (static_cast<size_t>(rows * columns) * 4 / 256 + 1) * 256))),
        view_(memory_, dtype, Shape{rows, columns}) {
    for (int64_t i = 0; i < rows * columns; ++i) set(i, static_cast<float>((i * 7 + seed * 3) % 9 - 4));
  }
  ~Operand() { std::free(memory_); }
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;
  operator Tensor() const { return view_; }
  float at(int64_t i) const {
    return view_.dtype() == DType::kF32 ? view_.as<float>()[i] : to_float(view_.as<bf16>()[i]);
  }

 private:
  void set(int64_t i, float value) {
    if (view_.dtype() == DType::kF32) {
      view_.as<float>()[i] = value;
    } else {
      view_.as<bf16>()[i] = bf16(value);
    }
  }
  std::byte* memory_;
  Tensor view_;
};

enum class Adds { kNothing, kOutput, kResidual, kScaledResidual, kBias, kResidualAndBias };
bool has_bias(Adds adds) { return adds == Adds::kBias || adds == Adds::kResidualAndBias; }

// c = op(a) op(b) + what is added, through `gemm`; whether the result is right.
bool holds(CudaGemm& gemm, std::array<int64_t, 3> sizes, DType in, DType out, bool ta, bool tb, Adds adds,
           AlgorithmChoice choice = AlgorithmChoice::kTuned) {
  const auto [m, n, k] = sizes;
  const Operand a(ta ? k : m, ta ? m : k, in, 1), b(tb ? n : k, tb ? k : n, in, 2), c(m, n, out, 3),
      other(m, n, out, 4), bias(1, n, out, 5);
  Gemm args{.a = a,
            .b = b,
            .c = c,
            .trans_a = ta ? Transpose::kYes : Transpose::kNo,
            .trans_b = tb ? Transpose::kYes : Transpose::kNo,
            .choice = choice};
  if (adds == Adds::kOutput) args.write = Write::kAccumulate;
  if (adds == Adds::kResidual || adds == Adds::kScaledResidual || adds == Adds::kResidualAndBias) args.residual = other;
  if (adds == Adds::kScaledResidual) {
    args.alpha = 3;
    args.residual_scale = -2;
  }
  if (has_bias(adds)) args.bias = Tensor(bias).reshape({n});
  std::vector<float> expected;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = has_bias(adds) ? bias.at(j) : 0;
      if (adds == Adds::kOutput) sum += c.at(i * n + j);
      if (args.residual) sum += args.residual_scale * other.at(i * n + j);
      for (int64_t l = 0; l < k; ++l)
        sum += args.alpha * a.at(ta ? l * m + i : i * k + l) * b.at(tb ? j * k + l : l * n + j);
      expected.push_back(sum);
    }
  }
  gemm.run(nullptr, args, nullptr);
  bool same = true;
  for (size_t i = 0; i < expected.size(); ++i) same = same && c.at(static_cast<int64_t>(i)) == expected[i];
  return same;
}

bool one_gemm(CudaGemm& gemm) { return holds(gemm, {3, 5, 7}, DType::kBF16, DType::kF32, true, false, Adds::kOutput); }

RuntimeOptions with(Autotune autotune) {
  log::configure(0, 1, log::Level::kError);
  RuntimeOptions options;
  options.autotune = autotune;
  return options;
}

}  // namespace

TEST_CASE("every GEMM of ops.h follows from the descriptors passed to cuBLASLt") {
  library.reset();
  for (const bool tf32 : {false, true}) {
    RuntimeOptions options = with(Autotune::kFalse);
    options.tf32 = tf32;
    CudaGemm gemm(options);
    for (const auto& [in, out] : {std::pair(DType::kF32, DType::kF32), std::pair(DType::kBF16, DType::kBF16),
                                  std::pair(DType::kBF16, DType::kF32)}) {
      for (const auto& sizes : {std::array<int64_t, 3>{3, 5, 7}, {1, 4, 6}, {4, 1, 2}}) {
        for (const bool ta : {false, true}) {
          for (const bool tb : {false, true}) {
            for (const Adds adds : {Adds::kNothing, Adds::kOutput, Adds::kResidual, Adds::kScaledResidual, Adds::kBias,
                                    Adds::kResidualAndBias}) {
              if (adds == Adds::kOutput && out != DType::kF32) continue;
              CHECK(holds(gemm, sizes, in, out, ta, tb, adds));
              CHECK(library.compute_type ==
                    (tf32 && in == DType::kF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F));
              // No partial sums in bf16, and none at all beside a bias in bf16.
              CHECK(library.reductions == (has_bias(adds) && out == DType::kBF16
                                               ? CUBLASLT_REDUCTION_SCHEME_NONE
                                               : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
            }
          }
        }
      }
    }
  }
  CHECK(library.alignments == std::array<uint32_t, 4>{256, 256, 256, 256});
}

TEST_CASE("an empty GEMM does not call cuBLASLt") {
  library.reset();
  CudaGemm gemm(with(Autotune::kFalse));
  for (const auto& sizes : {std::array<int64_t, 3>{2, 3, 0}, {0, 3, 4}, {3, 0, 4}}) {
    for (const Adds adds : {Adds::kNothing, Adds::kOutput, Adds::kResidual}) {
      CHECK(holds(gemm, sizes, DType::kBF16, DType::kF32, false, true, adds));
    }
  }
  CHECK(library.run.empty());
}

TEST_CASE("the heuristic is called once per shape") {
  library.reset();
  CudaGemm gemm(with(Autotune::kFalse));
  for (int i = 0; i < 2; ++i) {
    CHECK(one_gemm(gemm));
    CHECK(holds(gemm, {3, 5, 8}, DType::kBF16, DType::kF32, true, false, Adds::kOutput));
  }
  CHECK((library.asked == 2 && library.most == 1));
  CHECK(library.run == std::vector<uint64_t>{77, 77, 77, 77});
}

TEST_CASE("a GEMM is chosen for the SMs that NCCL leaves") {
  library.reset();
  RuntimeOptions options = with(Autotune::kFalse);
  for (const auto& [kept, left] : {std::pair(0, 0), std::pair(4, 8), std::pair(100, 1)}) {  // of 12 SMs
    options.nccl_max_ctas = kept;
    CudaGemm gemm(options);
    CHECK(one_gemm(gemm));
    CHECK(library.sms == left);
  }
}

TEST_CASE("a GEMM that cuBLASLt has no algorithm for is named") {
  library.reset();
  library.algorithms.clear();
  CudaGemm gemm(with(Autotune::kFalse));
  CHECK_THROWS_WITH(one_gemm(gemm), Catch::Contains("no algorithm for") && Catch::Contains("transposed"));
}

TEST_CASE(
    "autotune selects the fastest algorithm that runs, keeps the output unchanged meanwhile, and caches the choice") {
  const TempDir dir;
  setenv("XDG_CACHE_HOME", dir.file("cache").c_str(), 1);
  library.reset();
  library.algorithms = {77, kFails, 81, 90};
  {
    CudaGemm gemm(with(Autotune::kTrue));
    CHECK(one_gemm(gemm));  // it adds to its output, which timing leaves as it was
    CHECK(library.most > 1);
    CHECK(library.run.back() == 81);
    CHECK(std::count(library.run.begin(), library.run.end(), kFails) == 1);
    library.run.clear();
    CHECK(one_gemm(gemm));
    CHECK(library.run == std::vector<uint64_t>{81});
  }
  library.run.clear();
  CudaGemm next(with(Autotune::kTrue));
  CHECK(one_gemm(next));
  CHECK(library.run == std::vector<uint64_t>{81});  // nothing is timed again
  // TF32 is another entry of the cache.
  library.run.clear();
  RuntimeOptions options = with(Autotune::kTrue);
  options.tf32 = true;
  CudaGemm tf32(options);
  CHECK(one_gemm(tf32));
  CHECK(library.run.size() > 2);
}

TEST_CASE("autotune does not touch a GEMM whose algorithm is fixed, also where it tunes one of the same shape") {
  const TempDir dir;
  setenv("XDG_CACHE_HOME", dir.file("cache").c_str(), 1);
  library.reset();
  library.algorithms = {77, 81};  // 81 is the fastest
  CudaGemm gemm(with(Autotune::kTrue));
  const auto last_of = [&](AlgorithmChoice choice) {
    CHECK(holds(gemm, {3, 5, 7}, DType::kBF16, DType::kBF16, false, true, Adds::kScaledResidual, choice));
    return library.run.back();
  };
  CHECK(last_of(AlgorithmChoice::kFixed) == 77);
  CHECK((library.run.size() == 1 && library.most == 1));
  CHECK(last_of(AlgorithmChoice::kTuned) == 81);
  CHECK(last_of(AlgorithmChoice::kFixed) == 77);
}

TEST_CASE("autotune times with a cold cache, and in place where the output is only written") {
  const TempDir dir;
  setenv("XDG_CACHE_HOME", dir.file("cache").c_str(), 1);
  const auto tuned = [&](DType out, Adds adds) {  // as in a new process
    library.reset();
    library.algorithms = {77, 81, 90};  // 81 is the fastest with a cold cache, 90 with a warm one
    CudaGemm gemm(with(Autotune::kTrue));
    CHECK(holds(gemm, {3, 5, 7}, DType::kBF16, out, false, false, adds));
    CHECK(library.run.back() == 81);
    std::filesystem::remove_all(dir.file("cache"));
    return library.allocated;
  };
  for (const Adds adds : {Adds::kNothing, Adds::kResidual, Adds::kBias}) {
    CHECK(tuned(DType::kBF16, adds) == std::vector<size_t>{kCacheBytes});
  }
  CHECK(tuned(DType::kF32, Adds::kOutput) == std::vector<size_t>{3 * 5 * 4, kCacheBytes});
}

TEST_CASE("autotune waits for the work of other streams before it times the first algorithm") {
  const TempDir dir;
  setenv("XDG_CACHE_HOME", dir.file("cache").c_str(), 1);
  library.reset();
  library.algorithms = {81, 77};
  CudaGemm gemm(with(Autotune::kTrue));
  CHECK(one_gemm(gemm));
  CHECK(library.run.back() == 81);
}

TEST_CASE("autotune times the algorithms in turn, so a GPU that slows down meanwhile favours the first one less") {
  const TempDir dir;
  setenv("XDG_CACHE_HOME", dir.file("cache").c_str(), 1);
  library.reset();
  library.slower = 0.1;  // 5 products of 81 after 6 of 78 take 2 ms less than these, after 18 they take 4 ms more
  library.algorithms = {78, 81};
  CudaGemm gemm(with(Autotune::kTrue));
  CHECK(one_gemm(gemm));
  CHECK(library.run.back() == 81);
}

TEST_CASE("without memory, autotune times what it can, and leaves the rest to the heuristic") {
  const TempDir dir;
  setenv("XDG_CACHE_HOME", dir.file("cache").c_str(), 1);
  library.reset();
  library.no_memory = true;
  library.algorithms = {77, 81};
  CudaGemm gemm(with(Autotune::kTrue));
  CHECK(holds(gemm, {3, 5, 7}, DType::kBF16, DType::kF32, true, false, Adds::kOutput));
  CHECK(library.run == std::vector<uint64_t>{77});
  CHECK(holds(gemm, {3, 5, 8}, DType::kBF16, DType::kF32, true, false, Adds::kNothing));
  CHECK(std::count(library.run.begin(), library.run.end(), 81) > 1);
}

TEST_CASE("autotune falls back if no algorithm runs, and the GEMM reports the error") {
  const TempDir dir;
  setenv("XDG_CACHE_HOME", dir.file("cache").c_str(), 1);
  library.reset();
  library.algorithms = {kFails};
  CudaGemm gemm(with(Autotune::kTrue));
  CHECK_THROWS_WITH(one_gemm(gemm), Catch::Contains("cuBLASLt"));
  library.algorithms = {77};
  CudaGemm next(with(Autotune::kTrue));
  CHECK(one_gemm(next));  // no failing algorithm was cached
}
