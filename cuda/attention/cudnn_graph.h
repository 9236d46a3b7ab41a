// One pass of cuDNN's attention (causal, grouped heads, bf16 with sums in f32) as its operation graph, built once for a
// shape and then run.
//
// Its Stats are our lse: max + ln(sum exp(S - max)) of scaled scores. Of dense documents it writes them in any layout
// since 9.12, but before 9.26 its backward reads only (B, Hq, T); of ragged ones both passes have them token by token.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "cuda/attention/cudnn_layout.h"

using cudnnHandle_t = struct cudnnContext*;  // cudnn.h's own: who only hands it on does without that header

namespace tokamak {

struct AttentionGraphSpec {
  DocumentBatch documents;
  HeadLayout heads;
  bool backward = false;
  bool deterministic = false;  // of backward; forward always is
  // Q, K and V one after another, each (B, heads, T, D), instead of interleaved token by token; out and dout alike, and
  // the lse of both passes packed. How cuDNN would have them if it were alone: to measure against.
  bool separate_tensors = false;

  // Keys, values and their gradients in rows of their own, (N, Hkv D) each, which whoever calls copies: a ragged
  // gradient of grouped heads takes room for whole rows of dK's tensor, times the group, for each of dK and dV.
  bool own_keys() const { return documents.ragged() && backward && heads.q_heads != heads.kv_heads; }
};

// What a graph is built for: a GPU that is here, or the description of one in cuDNN's JSON (then cuDNN says whether it
// takes the graph, and no more: there is no plan to run).
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  std::string description;
  int compute_capability = 0;  // 90: Hopper
  // Of cuDNN's own part of a plan: it then looks for one that does with it.
  int64_t most_workspace_bytes = std::numeric_limits<int64_t>::max();
};

struct AttentionPointers {
  void* qkv = nullptr;
  void* out = nullptr;
  void* lse = nullptr;   // dense: forward (Hq, N), backward packed (B, Hq, T); ragged: (N, Hq)
  void* dout = nullptr;  // backward only, as dqkv
  void* dqkv = nullptr;
  std::array<void*, 4> own_keys = {};  // K, V, dK, dV, where spec.own_keys()
  void* tables = nullptr;              // RaggedTables, of ragged documents
  float scale = 1.0f;
};

class AttentionGraph {
 public:
  // Null if cuDNN refuses; then `why_not` is its reason.
  static std::unique_ptr<AttentionGraph> build(const AttentionGraphSpec& spec, const CudnnTarget& target,
                                               std::string* why_not);
  virtual ~AttentionGraph() = default;

  virtual int64_t workspace_bytes() const = 0;
  virtual std::string engine() const = 0;  // cuDNN's name of what was chosen

  // Enqueues on the handle's stream.
  virtual void run(cudnnHandle_t handle, const AttentionPointers& pointers, std::byte* workspace) = 0;
};

}  // namespace tokamak
