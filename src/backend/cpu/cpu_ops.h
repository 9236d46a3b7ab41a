// The operations on the CPU: the specification that other backends are tested against. One file per family of
// operations defines the do_ methods. No result depends on the number of threads.
#pragma once

#include <memory>

#include "backend/cpu/gemm.h"
#include "backend/ops.h"
#include "base/error.h"

namespace tokamak {

class CpuOps final : public Ops {
 public:
  CpuOps();
  ~CpuOps() override;

  int64_t workspace_bytes(const Workload& workload) const override;
  HeadChunk head_chunk(int64_t tokens, int64_t vocab, DType act) const override;
  int64_t rows_behind_attention() const override { return 0; }
  int64_t document_table_entries(const Workload&) const override { return 0; }
  int64_t rows_with_equal_bits() const override { return kFewRows; }

 protected:
  TOKAMAK_OPS(TOKAMAK_OVERRIDE_OP)

 private:
  std::unique_ptr<GemmEngine> gemm_;
};

// Scratch memory, shared by all operations. They do not nest, except for the GEMMs of the cross-entropy, which use no
// scratch; so each may use all of it. A family's file defines the function that returns the family's size.
int64_t attention_workspace(const Workload& workload);
int64_t cached_attention_workspace(const Workload& workload);
int64_t attention_backward_workspace(const Workload& workload);
int64_t cross_entropy_workspace(const Workload& workload);
int64_t rmsnorm_backward_workspace(const Workload& workload);
int64_t qk_norm_backward_workspace(const Workload& workload);

// `count` elements at the beginning of the workspace, aligned to 64 bytes, not initialised.
template <class T>
T* scratch(const Tensor& workspace, int64_t count) {
  const int64_t bytes = count * static_cast<int64_t>(sizeof(T));
  TOKAMAK_CHECK(workspace && workspace.bytes() >= bytes, "an operation needs ", bytes, " bytes of workspace, ",
                workspace ? workspace.bytes() : 0, " are bound");
  TOKAMAK_CHECK(reinterpret_cast<uintptr_t>(workspace.data()) % 64 == 0, "workspace not aligned to 64 bytes");
  return static_cast<T*>(workspace.data());
}

}  // namespace tokamak
