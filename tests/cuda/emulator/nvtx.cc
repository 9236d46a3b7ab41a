// In the place of cuda/nvtx.cc, which takes a header of CUDA: no profiler listens.
#include "cuda/nvtx.h"

namespace tokamak {

std::unique_ptr<Observer> make_nvtx_ranges() { return nullptr; }

}  // namespace tokamak
