// Replaces attention/cudnn.cc in a build that found no cudnn.h.
#include "cuda/attention/cudnn.h"

namespace tokamak {

std::unique_ptr<CudnnAttention> CudnnAttention::make(int, bool, std::string* why_not) {
  *why_not = "this build has no cuDNN";
  return nullptr;
}

}  // namespace tokamak
