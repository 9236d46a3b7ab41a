// The operations on an NVIDIA GPU: the counterparts of src/backend/cpu. One file per family of operations defines the
// do_ methods; each only enqueues work on the stream. With RuntimeOptions::deterministic the bits are the same at every
// run on one kind of GPU.
#pragma once

#include <memory>

#include "backend/ops.h"
#include "backend/options.h"
#include "cuda/attention/cudnn.h"
#include "cuda/gemm/gemm.h"

namespace tokamak {

class CudaOps final : public Ops {
 public:
  // What computes on a GPU with so much memory; `gemm` is null where it is only planned, `cudnn` where cuDNN's
  // attention is not wanted or not there.
  CudaOps(const RuntimeOptions& options, int64_t memory_bytes, std::unique_ptr<CudaGemm> gemm,
          std::unique_ptr<CudnnAttention> cudnn);
  ~CudaOps() override;

  int64_t workspace_bytes(const Workload& workload) const override;
  int64_t head_chunk_rows(int64_t tokens, int64_t vocab) const override;

 protected:
  TOKAMAK_OPS(TOKAMAK_OVERRIDE_OP)

 private:
  // The workspace is shared by operations that do not nest, but for the GEMMs inside the cross entropy: the GEMM
  // engine has its first part, the operations' scratch the rest.
  std::byte* scratch(int64_t bytes) const;
  int64_t scratch_bytes() const;  // that there are

  RuntimeOptions options_;
  int64_t logits_bytes_;  // that the head's logits may take at a time
  std::unique_ptr<CudaGemm> gemm_;
  std::unique_ptr<CudnnAttention> cudnn_;
};

}  // namespace tokamak
