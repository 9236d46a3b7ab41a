// One pass of cuDNN's attention (causal, grouped heads, bf16 with sums in f32) as its operation graph, built once for a
// shape and then run.
//
// Its Stats are our lse: max + ln(sum exp(S - max)) of scaled scores. For dense documents, forward writes them in any
// layout since 9.12, but backward reads only (B, Hq, T) before 9.26. For ragged ones both passes use one row per token.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "cuda/attention/cudnn_layout.h"

using cudnnHandle_t = struct cudnnContext*;  // as cudnn.h declares it, for files that only pass handles on

namespace tokamak {

struct AttentionGraphSpec {
  DocumentBatch documents;
  HeadLayout heads;
  bool backward = false;
  bool deterministic = false;  // of backward; forward is always deterministic
  int64_t window = 0;          // as in Attention; 0 if it is not below the documents' longest length
  // Q, K and V as separate tensors, each (B, heads, T, D), instead of interleaved per token; out and dout as well, and
  // the lse of both passes packed. This is cuDNN's preferred layout, as a baseline for measurements.
  bool separate_tensors = false;

  // Keys, values and their gradients in separate rows, (N, Hkv D) each, which the caller copies. Reason: a ragged
  // gradient of grouped heads needs workspace for whole rows of dK's tensor, times the group, for each of dK and dV.
  bool own_keys() const { return documents.ragged() && backward && heads.q_heads != heads.kv_heads; }
};

// The target of a graph: a present GPU, or the description of one in cuDNN's JSON. With a description cuDNN only says
// whether it supports the graph: there is no plan to run.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  std::string description;
  int compute_capability = 0;  // 90: Hopper
  // Limit of cuDNN's part of the workspace: it then looks for a plan that fits.
  int64_t most_workspace_bytes = std::numeric_limits<int64_t>::max();
};

struct AttentionPointers {
  void* qkv = nullptr;
  void* out = nullptr;
  void* lse = nullptr;   // dense: forward (Hq, N), backward packed (B, Hq, T); ragged: (N, Hq)
  void* dout = nullptr;  // backward only, like dqkv
  void* dqkv = nullptr;
  std::array<void*, 4> own_keys = {};  // K, V, dK, dV, if spec.own_keys()
  void* tables = nullptr;              // DocumentTables::tables, for ragged documents
  int64_t table_entries = 0;           // R of the tables, more than the slots
  float scale = 1.0f;
};

class AttentionGraph {
 public:
  // Null if cuDNN refuses the graph; then `why_not` is its reason.
  static std::unique_ptr<AttentionGraph> build(const AttentionGraphSpec& spec, const CudnnTarget& target,
                                               std::string* why_not);
  virtual ~AttentionGraph() = default;

  virtual int64_t workspace_bytes() const = 0;
  virtual std::string engine() const = 0;  // cuDNN's name of the chosen engine

  // Enqueues on the handle's stream.
  virtual void run(cudnnHandle_t handle, const AttentionPointers& pointers, std::byte* workspace) = 0;
};

}  // namespace tokamak
