// NVTX ranges around a device's work, for Nsight Systems; on the host, at enqueue time.
#pragma once

#include <memory>

#include "backend/observer.h"

namespace tokamak {

// Null without a profiler: a profiler sets NVTX_INJECTION64_PATH for this process.
std::unique_ptr<Observer> make_nvtx_ranges();

}  // namespace tokamak
