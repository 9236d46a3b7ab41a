#include "cuda/cuda_ops.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "cuda/device.h"
#include "cuda/workspace.h"

namespace tokamak {

CudaOps::CudaOps(const RuntimeOptions& options, int device)
    : options_(options), device_(device), gemm_(std::make_unique<CudaGemm>(options)) {
  if (options.attention == AttentionKind::kNative) return;
  std::string why_not;
  cudnn_ = CudnnAttention::make(device, options.deterministic, &why_not);
  if (cudnn_ == nullptr && options.attention == AttentionKind::kCudnn) {
    fail(Kind::kDevice, str("runtime.attention is cudnn: ", why_not), "runtime.attention: auto takes what is there");
  }
  log::info("attention by ", cudnn_ != nullptr ? "cuDNN where it supports the case, else our own kernels"
                                               : str("our own kernels: ", why_not));
}

CudaOps::~CudaOps() = default;

int64_t CudaOps::workspace_bytes(const Workload& workload) const {
  const int64_t scratch =
      std::max({attention_backward_scratch(workload), cross_entropy_scratch(workload),
                embedding_backward_scratch(workload), rmsnorm_backward_scratch(workload), reduction_scratch()});
  return CudaGemm::kWorkspaceBytes + std::max(scratch, cudnn_ != nullptr ? cudnn_->workspace_bytes(workload) : 0);
}

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
