// The operations on an NVIDIA GPU: the counterparts of src/backend/cpu. One file per family of operations defines the
// do_ methods; each only enqueues work on the stream. With RuntimeOptions::deterministic, repeated runs on one kind of
// GPU give the same bits.
#pragma once

#include <memory>

#include "backend/ops.h"
#include "backend/options.h"
#include "cuda/attention/cudnn.h"
#include "cuda/gemm/gemm.h"

namespace tokamak {

class CudaOps final : public Ops {
 public:
  // For a GPU with this much memory. `gemm` is null for plans only; `cudnn` is null if cuDNN's attention is disabled or
  // unavailable.
  CudaOps(const RuntimeOptions& options, int64_t memory_bytes, std::unique_ptr<CudaGemm> gemm,
          std::unique_ptr<CudnnAttention> cudnn);
  ~CudaOps() override;

  int64_t workspace_bytes(const Workload& workload) const override;
  HeadChunk head_chunk(int64_t tokens, int64_t vocab, DType act) const override;
  int64_t rows_behind_attention() const override;
  int64_t document_table_entries(const Workload& workload) const override;

 protected:
  TOKAMAK_OPS(TOKAMAK_OVERRIDE_OP)

 private:
  // Operations share the workspace because they do not nest, except for the GEMMs inside the cross-entropy. So the GEMM
  // engine owns its first part, and operations use the rest.
  std::byte* scratch(int64_t bytes) const;
  int64_t scratch_bytes() const;  // available scratch

  RuntimeOptions options_;
  int64_t logits_bytes_;  // limit for the head's logits
  std::unique_ptr<CudaGemm> gemm_;
  std::unique_ptr<CudnnAttention> cudnn_;
};

}  // namespace tokamak
