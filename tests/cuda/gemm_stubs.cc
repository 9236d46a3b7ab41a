// The stubs. The descriptors are the real library's: a GEMM is computed only from what they say.
#include "cuda/gemm_stubs.h"

#include <cublasLt.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>

#include "base/bf16.h"
#include "cuda/gemm/gemm.h"

using namespace tokamak;

Library library;

namespace {

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
  library.clock += std::abs(static_cast<double>(algorithm->data[0]) - (library.cold ? 80 : 90)) +
                   library.slower * static_cast<double>(library.run.size());
  library.cold = false;
  if (library.busy > 0) {
    library.clock += 1000;
    --library.busy;
  }
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
  if (bytes >= kCacheBytes) library.cold = true;
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (library.no_memory) return cudaErrorMemoryAllocation;
  library.allocated.push_back(bytes);
  *memory = std::malloc(bytes);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  library.busy = 0;
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
  properties->l2CacheSize = kCacheBytes;
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
