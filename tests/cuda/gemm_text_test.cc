// The log's description of cuBLASLt's algorithms, with the real library.
#include <cublasLt.h>

#include <catch2/catch.hpp>

#include "cuda/gemm/plan.h"

using namespace tokamak;

namespace {

int unknown = -1;  // the attribute that the library does not know

}  // namespace

extern "C" {

cublasStatus_t __real_cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t*,
                                                           cublasLtMatmulAlgoConfigAttributes_t, void*, size_t,
                                                           size_t*);
cublasStatus_t __wrap_cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                           cublasLtMatmulAlgoConfigAttributes_t attribute, void* value,
                                                           size_t bytes, size_t* written) {
  if (attribute == unknown) return CUBLAS_STATUS_INVALID_VALUE;
  return __real_cublasLtMatmulAlgoConfigGetAttribute(algorithm, attribute, value, bytes, written);
}

}  // extern "C"

TEST_CASE("the log describes an algorithm by its attributes, and by ? one that the library does not know") {
  cublasLtMatmulAlgo_t algorithm = {};
  algorithm.data[0] = 66;
  const auto set = [&](cublasLtMatmulAlgoConfigAttributes_t attribute, auto value) {
    REQUIRE(cublasLtMatmulAlgoConfigSetAttribute(&algorithm, attribute, &value, sizeof(value)) ==
            CUBLAS_STATUS_SUCCESS);
  };
  set(CUBLASLT_ALGO_CONFIG_TILE_ID, uint32_t{CUBLASLT_MATMUL_TILE_128x256});
  set(CUBLASLT_ALGO_CONFIG_STAGES_ID, uint32_t{CUBLASLT_MATMUL_STAGES_64xAUTO});
  set(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, uint16_t{CUBLASLT_CLUSTER_SHAPE_2x1x1});
  set(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, int32_t{4});
  set(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  CHECK(text_of(algorithm) == "id 66, tile 23, stages 35, cluster 3, split-K 4, reduction 2");
  unknown = CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
  CHECK(text_of(algorithm) == "id 66, tile 23, stages 35, cluster ?, split-K 4, reduction 2");
}
