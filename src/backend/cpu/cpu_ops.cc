#include "backend/cpu/cpu_ops.h"

#include <algorithm>

namespace tokamak {

CpuOps::CpuOps() : gemm_(std::make_unique<GemmEngine>()) {}

CpuOps::~CpuOps() = default;

int64_t CpuOps::workspace_bytes(const Workload& workload) const {
  return std::max({attention_workspace(workload), cached_attention_workspace(workload),
                   attention_backward_workspace(workload), cross_entropy_workspace(workload),
                   rmsnorm_backward_workspace(workload), qk_norm_backward_workspace(workload)});
}

}  // namespace tokamak
