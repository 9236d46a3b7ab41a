// Replaces cuda/launch.h: the same calls, on the emulator.
#pragma once

#include <tuple>
#include <type_traits>

#include "cuda/check.h"
#include "tests/cuda/emulator/calls.h"
#include "tests/cuda/emulator/faults.h"
#include "tests/cuda/emulator/streams.h"

#define TOKAMAK_SHARED_MEMORY(name) unsigned char* const name = ::emulator::shared_memory()

namespace tokamak {

struct KernelLaunch {
  const char* name;
  dim3 grid;
  unsigned threads;
  size_t shared = 0;
};

template <class... Parameters>
void launch(const KernelLaunch& how, cudaStream_t stream, void (*kernel)(Parameters...),
            const std::type_identity_t<Parameters>&... arguments) {
  if (how.grid.x == 0 || how.grid.y == 0 || how.grid.z == 0) return;
  emulator::enqueue(stream, [how, kernel, values = std::tuple<Parameters...>(arguments...)] {
    if (!emulator::begin_kernel(how.name)) return;
    emulator::count_kernel(how.name);
    emulator::run(how.name, how.grid, how.threads, how.shared, [&] { std::apply(kernel, values); });
  });
  check_launch(how.name);
}

inline unsigned blocks_for(int64_t items, int64_t per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

}  // namespace tokamak
