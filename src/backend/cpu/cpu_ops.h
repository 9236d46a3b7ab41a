// The operations on the CPU: the specification that other backends are tested against. One file per family of
// operations defines the do_ methods. No result depends on the number of threads.
#pragma once

#include <memory>

#include "backend/cpu/gemm.h"
#include "backend/ops.h"

namespace tokamak {

class CpuOps final : public Ops {
 public:
  CpuOps();
  ~CpuOps() override;

  int64_t workspace_bytes(const Workload& workload) const override;
  HeadChunk head_chunk(int64_t tokens, int64_t vocab, DType act) const override;
  int64_t rows_behind_attention() const override { return 0; }
  int64_t document_table_entries(const Workload&) const override { return 0; }

 protected:
  TOKAMAK_OPS(TOKAMAK_OVERRIDE_OP)

 private:
  std::unique_ptr<GemmEngine> gemm_;
};

}  // namespace tokamak
