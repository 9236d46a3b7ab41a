// NVTX ranges around what a device is given, for Nsight Systems: on the host, where the work is enqueued.
#pragma once

#include <memory>

#include "backend/observer.h"

namespace tokamak {

// Null where no profiler listens: one that does has set NVTX_INJECTION64_PATH for this process.
std::unique_ptr<Observer> make_nvtx_ranges();

}  // namespace tokamak
