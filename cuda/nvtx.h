// NVTX ranges for Nsight Systems. Each covers the time in which the host enqueues a call, not that in which it runs.
#pragma once

#include <memory>

#include "backend/observer.h"

namespace tokamak {

// Null without a profiler: a profiler sets NVTX_INJECTION64_PATH for this process.
std::unique_ptr<Observer> make_nvtx_ranges();

}  // namespace tokamak
