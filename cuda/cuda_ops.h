// The operations on an NVIDIA GPU: the counterparts of src/backend/cpu. One file per family of operations defines the
// do_ methods; each only enqueues work on the stream. With RuntimeOptions::deterministic, repeated runs on one kind of
// GPU give the same bits.
#pragma once

#include <memory>

#include "backend/gpu_sizes.h"
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
  int64_t rows_behind_attention() const override { return gpu_rows_behind_attention(options_.attention); }
  int64_t document_table_entries(const Workload& workload) const override {
    return gpu_document_table_entries(options_.attention, workload);
  }

 protected:
  TOKAMAK_OPS(TOKAMAK_OVERRIDE_OP)

 private:
  // Operations share the workspace because they do not nest, except for the GEMMs inside the cross-entropy. So the GEMM
  // engine owns the workspace's first part, and operations use the rest.
  std::byte* scratch(int64_t bytes) const;
  int64_t scratch_bytes() const;  // available scratch

  RuntimeOptions options_;
  int64_t logits_bytes_;  // limit for the head's logits
  std::unique_ptr<CudaGemm> gemm_;
  std::unique_ptr<CudnnAttention> cudnn_;
};

// Upper bounds of the scratch memory of a family of operations in a run; defined in the family's file.
int64_t attention_backward_scratch(const Workload& workload);
int64_t cached_attention_scratch(const Workload& workload);
int64_t cross_entropy_scratch(const Workload& workload, int64_t logits_bytes);  // logits_bytes: limit for logits
int64_t embedding_backward_scratch(const Workload& workload);
int64_t rmsnorm_backward_scratch(const Workload& workload);
int64_t qk_norm_backward_scratch(const Workload& workload);
int64_t column_sums_scratch(const Workload& workload);
int64_t reduction_scratch();  // for sums and statistics

}  // namespace tokamak
