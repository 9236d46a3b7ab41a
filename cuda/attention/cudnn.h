// cuDNN's fused attention, where the build found cuDNN's headers and the machine has the library. Without the headers
// attention/cudnn_absent.cc is linked in its place; without either, our own kernels do all.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>

#include "backend/ops.h"

namespace tokamak {

class CudnnAttention {
 public:
  // Null where cuDNN cannot be used; then `why_not` says what is missing.
  static std::unique_ptr<CudnnAttention> make(int device, bool deterministic, std::string* why_not);
  virtual ~CudnnAttention() = default;

  // Whether these calls can be done by it in a workspace of `room` bytes: bf16, and a plan that cuDNN accepts. Plans
  // are built at the first question and kept. Numbers that the host knows decide: no question waits for the device.
  virtual bool supports(const Attention& args, int64_t room) = 0;
  virtual bool supports(const AttentionBackward& args, int64_t room) = 0;

  // What any call of such a run wants, whatever its documents.
  virtual int64_t workspace_bytes(const Workload& workload) = 0;

  // Enqueues; `workspace` has the room that supports() was asked for, aligned to 256 bytes.
  virtual void run(cudaStream_t stream, const Attention& args, std::byte* workspace) = 0;
  virtual void run(cudaStream_t stream, const AttentionBackward& args, std::byte* workspace) = 0;
};

}  // namespace tokamak
