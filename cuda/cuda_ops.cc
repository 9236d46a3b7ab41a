#include "cuda/cuda_ops.h"

#include <algorithm>

#include "base/error.h"
#include "cuda/device.h"

namespace tokamak {

CudaOps::CudaOps(const RuntimeOptions& options, int64_t memory_bytes, std::unique_ptr<CudaGemm> gemm,
                 std::unique_ptr<CudnnAttention> cudnn)
    : options_(options),
      logits_bytes_(memory_bytes / options.ranks_per_gpu / kGpuLogitsShare),
      gemm_(std::move(gemm)),
      cudnn_(std::move(cudnn)) {}

CudaOps::~CudaOps() = default;

int64_t CudaOps::workspace_bytes(const Workload& workload) const {
  const int64_t scratch =
      std::max({attention_backward_scratch(workload), cached_attention_scratch(workload),
                cross_entropy_scratch(workload, logits_bytes_), embedding_backward_scratch(workload),
                rmsnorm_backward_scratch(workload), qk_norm_backward_scratch(workload), column_sums_scratch(workload),
                reduction_scratch()});
  return CudaGemm::kWorkspaceBytes + std::max(scratch, cudnn_ != nullptr ? cudnn_->workspace_bytes(workload) : 0);
}

int64_t CudaOps::scratch_bytes() const { return workspace() ? workspace().bytes() - CudaGemm::kWorkspaceBytes : 0; }

std::byte* CudaOps::scratch(int64_t bytes) const {
  const int64_t bound = workspace() ? workspace().bytes() : 0;
  TOKAMAK_CHECK(bound >= CudaGemm::kWorkspaceBytes + bytes, "an operation needs ", bytes, " bytes of scratch beside ",
                CudaGemm::kWorkspaceBytes, ", ", bound, " are bound");
  return static_cast<std::byte*>(workspace().data()) + CudaGemm::kWorkspaceBytes;
}

void CudaOps::do_gemm(Stream& stream, const Gemm& args) {
  scratch(0);
  gemm_->run(handle(stream), args, static_cast<std::byte*>(workspace().data()));
}

}  // namespace tokamak
