// The only place that launches kernels: grid, shared memory, arguments converted to the kernel's types, check.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/check.h"

// A kernel's dynamic shared memory, aligned for 16-byte accesses.
#define TOKAMAK_SHARED_MEMORY(name) extern __shared__ __align__(128) unsigned char name[]

namespace tokamak {

struct KernelLaunch {
  const char* name;   // of the kernel, for errors
  dim3 grid;          // blocks; no launch if a dimension is 0
  unsigned threads;   // of a block
  size_t shared = 0;  // bytes of dynamic shared memory
};

template <class... Parameters>
void launch(const KernelLaunch& how, cudaStream_t stream, void (*kernel)(Parameters...),
            const std::type_identity_t<Parameters>&... arguments) {
  if (how.grid.x == 0 || how.grid.y == 0 || how.grid.z == 0) return;
  constexpr size_t kAlwaysAllowed = 48 * 1024;
  if (how.shared > kAlwaysAllowed) {
    TOKAMAK_CUDA(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                      cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(how.shared)));
  }
  kernel<<<how.grid, how.threads, how.shared, stream>>>(arguments...);
  check_launch(how.name);
}

inline unsigned blocks_for(int64_t items, int64_t per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

}  // namespace tokamak
