// One call of cuDNN's attention by a finished graph: the layout of its workspace, and the conversions to cuDNN's
// layouts before it and to ours after it. Independent of cuDNN itself.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstdint>

#include "cuda/attention/cudnn_graph.h"

namespace tokamak {

// Offsets in bytes into the workspace; cuDNN's own part comes last. Behind what cuDNN reads lie kCudnnTileRows rows
// that each call zeroes, since other operations use the same memory.
class CallParts {
 public:
  explicit CallParts(const AttentionGraphSpec& spec);

  int64_t tables = 0, lse = 0;
  std::array<int64_t, 4> own_keys = {};  // K, V, dK, dV
  int64_t graph = 0;
  bool moves_lse = false;

 private:
  int64_t next(int64_t bytes);
  int64_t end_ = 0;
};

// Enqueues on `stream`, the handle's. The documents match `spec`; ragged documents may be fewer than its slots.
void call_graph(cudnnHandle_t handle, cudaStream_t stream, AttentionGraph& graph, const AttentionGraphSpec& spec,
                const Attention& args, std::byte* workspace);
void call_graph(cudnnHandle_t handle, cudaStream_t stream, AttentionGraph& graph, const AttentionGraphSpec& spec,
                const AttentionBackward& args, std::byte* workspace);

}  // namespace tokamak
