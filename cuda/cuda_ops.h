// The operations on an NVIDIA GPU: the counterparts of src/backend/cpu. One file per family of operations defines the
// do_ methods; each only enqueues work on the stream. With RuntimeOptions::deterministic the bits are the same at every
// run on one kind of GPU.
#pragma once

#include <memory>

#include "backend/ops.h"
#include "backend/options.h"
#include "cuda/attention_cudnn.h"
#include "cuda/gemm.h"

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
  void do_gemm(Stream& stream, const Gemm& args) override;
  void do_embedding(Stream& stream, const Embedding& args) override;
  void do_embedding_backward(Stream& stream, const EmbeddingBackward& args) override;
  void do_rmsnorm(Stream& stream, const RmsNorm& args) override;
  void do_rmsnorm_backward(Stream& stream, const RmsNormBackward& args) override;
  void do_column_sums(Stream& stream, const ColumnSums& args) override;
  void do_qk_norm(Stream& stream, const QkNorm& args) override;
  void do_qk_norm_backward(Stream& stream, const QkNormBackward& args) override;
  void do_rope(Stream& stream, const Rope& args) override;
  void do_attention(Stream& stream, const Attention& args) override;
  void do_attention_backward(Stream& stream, const AttentionBackward& args) override;
  void do_cache_append(Stream& stream, const CacheAppend& args) override;
  void do_cached_attention(Stream& stream, const CachedAttention& args) override;
  void do_swiglu(Stream& stream, const SwiGlu& args) override;
  void do_swiglu_backward(Stream& stream, const SwiGluBackward& args) override;
  void do_linear_cross_entropy(Stream& stream, const LinearCrossEntropy& args) override;
  void do_control_step(Stream& stream, const ControlStep& args) override;
  void do_adamw(Stream& stream, const AdamW& args) override;
  void do_sum_squares(Stream& stream, const SumSquares& args) override;
  void do_statistics(Stream& stream, const Statistics& args) override;
  void do_cast(Stream& stream, const Cast& args) override;
  void do_fill(Stream& stream, const Fill& args) override;
  void do_random_normal(Stream& stream, const RandomNormal& args) override;

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
