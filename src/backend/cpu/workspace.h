// Scratch memory shared by all operations. Operations do not nest, except for the GEMMs of the cross-entropy, which use
// no scratch; so each may use all of it. A family's file defines the function that returns the family's size.
#pragma once

#include <cstdint>

#include "backend/ops.h"
#include "base/error.h"

namespace tokamak {

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
