// cuDNN's fused attention, available if the build found cuDNN's headers and the machine has the library. Without the
// headers attention/cudnn_absent.cc is linked instead. Without either, our own kernels run.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>

#include "backend/ops.h"

namespace tokamak {

class CudnnAttention {
 public:
  // Null if cuDNN cannot be used; then `why_not` says what is missing.
  static std::unique_ptr<CudnnAttention> make(int device, bool deterministic, std::string* why_not);
  virtual ~CudnnAttention() = default;

  // Whether cuDNN supports these calls in a workspace of `room` bytes: they are bf16, and cuDNN has a plan. Plans are
  // built at the first request and kept. The decision uses host values only and never synchronises.
  virtual bool supports(const Attention& args, int64_t room) = 0;
  virtual bool supports(const AttentionBackward& args, int64_t room) = 0;

  // Bytes of workspace that suffice for every call of a run with this workload.
  virtual int64_t workspace_bytes(const Workload& workload) = 0;

  // Enqueues; `workspace` has the size that was passed to supports(), aligned to 256 bytes.
  virtual void run(cudaStream_t stream, const Attention& args, std::byte* workspace) = 0;
  virtual void run(cudaStream_t stream, const AttentionBackward& args, std::byte* workspace) = 0;
};

}  // namespace tokamak
