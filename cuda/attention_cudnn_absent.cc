// Stands in for attention_cudnn.cc in a build that found no cudnn-frontend.
#include "cuda/attention_cudnn.h"

namespace tokamak {

std::unique_ptr<CudnnAttention> CudnnAttention::make(int, bool, std::string* why_not) {
  *why_not = "this build has no cudnn-frontend";
  return nullptr;
}

}  // namespace tokamak
