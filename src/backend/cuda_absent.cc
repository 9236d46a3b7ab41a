// Replaces cuda/ in a build without CUDA, which still plans for GPUs.
#include "backend/backend.h"
#include "backend/gpu_sizes.h"
#include "backend/plan_device.h"
#include "base/error.h"

namespace tokamak {

namespace {

// The memory needs of cuda/'s operations, without partial sums that are smaller than the head's logits.
class GpuSizes final : public Ops {
 public:
  explicit GpuSizes(const RuntimeOptions& options)
      : logits_bytes_(kPlannedGpuMemory / options.ranks_per_gpu / kGpuLogitsShare), attention_(options.attention) {}

  int64_t workspace_bytes(const Workload& w) const override {
    const int64_t attention_delta = w.heads.q_heads * w.tokens * size_of(DType::kF32);
    return kGpuGemmWorkspaceBytes +
           std::max(attention_delta, GpuHeadScratch(w.tokens, w.vocab, w.compute, logits_bytes_).bytes);
  }
  HeadChunk head_chunk(int64_t tokens, int64_t vocab, DType act) const override {
    return {GpuHeadScratch::chunk_rows(tokens, vocab, act, logits_bytes_), act};
  }
  int64_t rows_behind_attention() const override { return gpu_rows_behind_attention(attention_); }
  int64_t document_table_entries(const Workload& w) const override { return gpu_document_table_entries(attention_, w); }

 protected:
#define TOKAMAK_REFUSED_OP(name, Args) \
  void do_##name(Stream&, const Args&) override { fail(Kind::kBug, "an operation of a GPU without CUDA"); }
  TOKAMAK_OPS(TOKAMAK_REFUSED_OP)
#undef TOKAMAK_REFUSED_OP

 private:
  int64_t logits_bytes_;
  AttentionKind attention_;
};

}  // namespace

CudaPresence cuda_presence() { return {.missing = "this build has no CUDA"}; }

Backend make_cuda_backend(const RuntimeOptions&, int) {
  fail(Kind::kDevice, "this build has no CUDA backend", "runtime.backend: cpu");
}

Backend plan_cuda_backend(const RuntimeOptions& options) {
  return make_plan_backend({.description = "a GPU",
                            .uses_host_memory = false,
                            .startup_bytes = kGpuStartupBytes,
                            .reserve_bytes = kGpuReserveBytes},
                           std::make_unique<GpuSizes>(options));
}

}  // namespace tokamak
