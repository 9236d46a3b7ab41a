// GEMMs by cuBLASLt: bf16 with f32 accumulation on tensor cores; f32 in true f32 unless TF32 is asked for.
// The algorithm of each shape is chosen once and kept.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "backend/gpu_sizes.h"
#include "backend/ops.h"
#include "backend/options.h"

namespace tokamak {

class CudaGemm {
 public:
  // cuBLASLt's workspace; NVIDIA's recommendation for Hopper and later.
  static constexpr int64_t kWorkspaceBytes = kGpuGemmWorkspaceBytes;

  explicit CudaGemm(const RuntimeOptions& options);
  ~CudaGemm();
  CudaGemm(const CudaGemm&) = delete;
  CudaGemm& operator=(const CudaGemm&) = delete;

  // `args` have passed the checks of Ops::gemm; `workspace` has kWorkspaceBytes, aligned to 256 bytes.
  void run(cudaStream_t stream, const Gemm& args, std::byte* workspace);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tokamak
