// Shared by gemm/gemm.cc and gemm/tuning.cc: cuBLASLt's errors, a prepared GEMM, and their descriptions for the log.
#pragma once

#include <cublasLt.h>

#include <string>

#include "cuda/gemm/problem.h"

namespace tokamak {

[[noreturn]] void cublas_failed(cublasStatus_t status, const char* call, const char* file, int line);

// A prepared GEMM. The descriptors are initialised in place, because their contents are opaque.
struct Plan {
  cublasLtMatmulDescOpaque_t product;
  cublasLtMatrixLayoutOpaque_t left, right, output;
  cublasLtMatmulAlgo_t algorithm;
};

// Enqueues the GEMM by `algorithm`; `workspace` of CudaGemm::kWorkspaceBytes.
cublasStatus_t run_plan(cublasLtHandle_t handle, Plan& plan, const cublasLtMatmulAlgo_t& algorithm,
                        const GemmOperands& operands, std::byte* workspace, cudaStream_t stream);

std::string text_of(const GemmProblem& problem);

// "id 66, tile 20, stages 35, cluster 3, split-K 1, reduction 0": cublasLt.h names the numbers; "?" where the
// algorithm or the library has no such attribute.
std::string text_of(const cublasLtMatmulAlgo_t& algorithm);

}  // namespace tokamak

#define TOKAMAK_CUBLAS(call)                                                                  \
  do {                                                                                        \
    if (const cublasStatus_t status_ = (call); status_ != CUBLAS_STATUS_SUCCESS) [[unlikely]] \
      ::tokamak::cublas_failed(status_, #call, __FILE__, __LINE__);                           \
  } while (false)
