// CudaGemm's calls to cuBLASLt. The descriptors are the real library's. The GEMM, the heuristic and CUDA's runtime are
// stubs, so this runs without a GPU: the GEMM is computed only from what the descriptors say.
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/bf16.h"
#include "base/error.h"
#include "base/log.h"
#include "cuda/gemm/gemm.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

constexpr uint64_t kFails = 66;  // an algorithm that does not run

struct Library {
  std::vector<uint64_t> algorithms = {77};  // by which number the heuristic answers, the best guess first
  int asked = 0;                            // the heuristic
  int most = 0;                             // how many it was asked for
  std::array<uint32_t, 4> alignments = {};  // left, right, added, output
  uint32_t reductions = 0;
  int sms = 0;                // that the algorithm was asked for; 0: all
  std::vector<uint64_t> run;  // the algorithm of each product
  int compute_type = 0;
  double clock = 0;  // ms; algorithm i takes |i - 80|
  void reset() { *this = Library(); }
} library;

template <class T, class Object, class Attribute>
T read(cublasStatus_t (*get)(Object, Attribute, void*, size_t, size_t*), Object object, Attribute attribute) {
  T value;
  size_t size = 0;
  REQUIRE(get(object, attribute, &value, sizeof(value), &size) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(size == sizeof(value));
  return value;
}

struct Matrix {
  explicit Matrix(cublasLtMatrixLayout_t layout) {
    const auto of = [&](auto value, cublasLtMatrixLayoutAttribute_t attribute) {
      return read<decltype(value)>(cublasLtMatrixLayoutGetAttribute, const_cast<cublasLtMatrixLayout_t>(layout),
                                   attribute);
    };
    rows = static_cast<int64_t>(of(uint64_t{}, CUBLASLT_MATRIX_LAYOUT_ROWS));
    columns = static_cast<int64_t>(of(uint64_t{}, CUBLASLT_MATRIX_LAYOUT_COLS));
    distance = of(int64_t{}, CUBLASLT_MATRIX_LAYOUT_LD);
    is_f32 = of(uint32_t{}, CUBLASLT_MATRIX_LAYOUT_TYPE) == CUDA_R_32F;
    CHECK(of(int32_t{}, CUBLASLT_MATRIX_LAYOUT_ORDER) == CUBLASLT_ORDER_COL);
    CHECK(of(int32_t{}, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) == 1);
    CHECK(distance >= rows);
  }
  float at(const void* data, int64_t row, int64_t column) const {
    const int64_t i = row + column * distance;
    return is_f32 ? static_cast<const float*>(data)[i] : to_float(static_cast<const bf16*>(data)[i]);
  }
  int64_t rows, columns, distance;
  bool is_f32;
};

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(8);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t results[], int* found) {
  const auto of = [&](auto value, cublasLtMatmulPreferenceAttributes_t attribute) {
    return read<decltype(value)>(cublasLtMatmulPreferenceGetAttribute, preference, attribute);
  };
  ++library.asked;
  library.sms = read<int32_t>(cublasLtMatmulDescGetAttribute, product, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET);
  library.most = most;
  library.alignments = {of(uint32_t{}, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES),
                        of(uint32_t{}, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES),
                        of(uint32_t{}, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES),
                        of(uint32_t{}, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)};
  library.reductions = of(uint32_t{}, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
  CHECK(of(uint64_t{}, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) == uint64_t{CudaGemm::kWorkspaceBytes});
  *found = std::min(most, static_cast<int>(library.algorithms.size()));
  for (int i = 0; i < *found; ++i) {
    results[i] = {};
    results[i].algo.data[0] = library.algorithms[static_cast<size_t>(i)];
    results[i].state = CUBLAS_STATUS_SUCCESS;
  }
  return *found > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void* alpha, const void* left,
                              cublasLtMatrixLayout_t left_layout, const void* right,
                              cublasLtMatrixLayout_t right_layout, const void* beta, const void* added,
                              cublasLtMatrixLayout_t added_layout, void* output, cublasLtMatrixLayout_t output_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void*, size_t workspace_bytes, cudaStream_t) {
  const auto of = [&](cublasLtMatmulDescAttributes_t attribute) {
    return read<int32_t>(cublasLtMatmulDescGetAttribute, product, attribute);
  };
  CHECK(of(CUBLASLT_MATMUL_DESC_SCALE_TYPE) == CUDA_R_32F);
  CHECK(of(CUBLASLT_MATMUL_DESC_POINTER_MODE) == CUBLASLT_POINTER_MODE_HOST);
  CHECK(workspace_bytes == size_t{CudaGemm::kWorkspaceBytes});
  library.compute_type = of(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE);
  library.run.push_back(algorithm->data[0]);
  library.clock += std::abs(static_cast<double>(algorithm->data[0]) - 80);
  if (algorithm->data[0] == kFails) return CUBLAS_STATUS_NOT_SUPPORTED;

  const bool turn_left = of(CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_T,
             turn_right = of(CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_T;
  const Matrix a(left_layout), b(right_layout), c(added_layout), d(output_layout);
  const auto epilogue = static_cast<uint32_t>(of(CUBLASLT_MATMUL_DESC_EPILOGUE));
  const void* bias = nullptr;  // of D's type, as is the library's default
  if (epilogue == CUBLASLT_EPILOGUE_BIAS) {
    bias = read<const void*>(cublasLtMatmulDescGetAttribute, product, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
    REQUIRE(bias != nullptr);
  } else {
    CHECK(epilogue == CUBLASLT_EPILOGUE_DEFAULT);
  }
  const int64_t terms = turn_left ? a.rows : a.columns;
  REQUIRE((turn_left ? a.columns : a.rows) == d.rows);
  REQUIRE((turn_right ? b.rows : b.columns) == d.columns);
  REQUIRE((turn_right ? b.columns : b.rows) == terms);
  REQUIRE((c.rows == d.rows && c.columns == d.columns));
  for (int64_t j = 0; j < d.columns; ++j) {
    for (int64_t i = 0; i < d.rows; ++i) {
      float sum = 0;
      for (int64_t l = 0; l < terms; ++l) {
        sum += (turn_left ? a.at(left, l, i) : a.at(left, i, l)) * (turn_right ? b.at(right, j, l) : b.at(right, l, j));
      }
      sum *= *static_cast<const float*>(alpha);
      const float share = *static_cast<const float*>(beta);
      if (share != 0) sum += share * c.at(added, i, j);
      if (bias != nullptr) sum += d.at(bias, i, 0);
      const int64_t at = i + j * d.distance;
      if (d.is_f32) {
        static_cast<float*>(output)[at] = sum;
      } else {
        static_cast<bf16*>(output)[at] = bf16(sum);
      }
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  *memory = std::malloc(bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) { return "an error"; }
const char* cudaGetErrorName(cudaError_t) { return "cudaError"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "A GPU/1");
  properties->multiProcessorCount = 12;
  return cudaSuccess;
}
// An event is the time at which it was recorded.
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = reinterpret_cast<cudaEvent_t>(new double);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<double*>(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  *reinterpret_cast<double*>(event) = library.clock;
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = static_cast<float>(*reinterpret_cast<double*>(end) - *reinterpret_cast<double*>(begin));
  return cudaSuccess;
}

}  // extern "C"

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

enum class Adds { kNothing, kOutput, kResidual, kResidualInPlace, kBias };

// c = op(a) op(b) + what is added, through `gemm`; whether it came out.
bool holds(CudaGemm& gemm, std::array<int64_t, 3> sizes, DType in, DType out, bool ta, bool tb, Adds adds) {
  const auto [m, n, k] = sizes;
  const Operand a(ta ? k : m, ta ? m : k, in, 1), b(tb ? n : k, tb ? k : n, in, 2), c(m, n, out, 3),
      other(m, n, out, 4), bias(1, n, out, 5);
  Gemm args{.a = a,
            .b = b,
            .c = c,
            .trans_a = ta ? Transpose::kYes : Transpose::kNo,
            .trans_b = tb ? Transpose::kYes : Transpose::kNo};
  if (adds == Adds::kOutput) args.write = Write::kAccumulate;
  if (adds == Adds::kResidual) args.residual = other;
  if (adds == Adds::kResidualInPlace) args.residual = c;
  if (adds == Adds::kBias) args.bias = Tensor(bias).reshape({n});
  std::vector<float> expected;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = adds == Adds::kNothing    ? 0
                  : adds == Adds::kBias     ? bias.at(j)
                  : adds == Adds::kResidual ? other.at(i * n + j)
                                            : c.at(i * n + j);
      for (int64_t l = 0; l < k; ++l) sum += a.at(ta ? l * m + i : i * k + l) * b.at(tb ? j * k + l : l * n + j);
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
            for (const Adds adds :
                 {Adds::kNothing, Adds::kOutput, Adds::kResidual, Adds::kResidualInPlace, Adds::kBias}) {
              if (adds == Adds::kOutput && out != DType::kF32) continue;
              CHECK(holds(gemm, sizes, in, out, ta, tb, adds));
              CHECK(library.compute_type ==
                    (tf32 && in == DType::kF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F));
            }
          }
        }
      }
    }
  }
  CHECK(library.alignments == std::array<uint32_t, 4>{256, 256, 256, 256});
  CHECK(library.reductions == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);  // no partial sums in bf16
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
  for (const auto& [kept, left] : {std::pair(0, 0), std::pair(4, 8), std::pair(100, 1)}) {  // of 12
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
    CHECK(one_gemm(gemm));  // which adds to its output: what was timed is not in it
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
  // TF32 is another GEMM.
  library.run.clear();
  RuntimeOptions options = with(Autotune::kTrue);
  options.tf32 = true;
  CudaGemm tf32(options);
  CHECK(one_gemm(tf32));
  CHECK(library.run.size() > 2);
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
  CHECK(one_gemm(next));  // nothing bad was kept
}
