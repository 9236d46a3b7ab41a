// AttentionGraph by cuDNN's own graph API, where the build found no cudnn-frontend (else
// attention_cudnn_graph_frontend.cc is in its place, and tests hold that both build the same graph).
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "cuda/attention_cudnn_flash.h"
#include "cuda/attention_cudnn_graph.h"
#include "cuda/attention_cudnn_operations.h"
#include "cuda/attention_cudnn_plan.h"
#include "cuda/attention_cudnn_tensors.h"

namespace tokamak {
namespace {

constexpr int64_t kAlignment = 256;

constexpr size_t kFirstWithPartialBlocks = 91501;  // of keys in backward; before, they must be masked as padding
constexpr size_t kFirstDeterministicBlackwell = 91800;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// What cuDNN has no kernels for, or wrong ones, without always saying so; empty if there is nothing of the kind. The
// limits are those that cudnn-frontend 1.18 holds.
std::string known_limit(const AttentionGraphSpec& spec, const CudnnTarget& target) {
  const int architecture = target.compute_capability / 10;
  const int64_t head_dim = spec.heads.head_dim, length = spec.documents.length;
  if (head_dim % 8 != 0) return "hidden_dim (of a head) is no multiple of 8";
  if (!spec.backward) return "";
  if (head_dim > (architecture == 9 ? 256 : 128)) return str("hidden_dim (of a head) is ", head_dim, ", too large");
  if (length == 1) return "one token in a document";
  if (length % 128 != 0 && cudnnGetVersion() < kFirstWithPartialBlocks) {
    return str("cuDNN ", cudnnGetVersion(), " wants documents of a multiple of 128 tokens");
  }
  if (spec.deterministic && architecture == 10 && cudnnGetVersion() < kFirstDeterministicBlackwell) {
    return str("cuDNN ", cudnnGetVersion(), " is not deterministic on Blackwell");
  }
  return "";
}

// The heuristics do not know it.
std::optional<CudnnEngineChoice> engine_of(const AttentionGraphSpec& spec, const CudnnTarget& target) {
  if (!spec.backward || !spec.deterministic || target.compute_capability / 10 != 10) return std::nullopt;
  return CudnnEngineChoice{5, {{CUDNN_KNOB_TYPE_KERNEL_CFG, 31}, {CUDNN_KNOB_TYPE_STAGES, 2}}};
}

class BuiltGraph final : public AttentionGraph {
 public:
  BuiltGraph(const AttentionGraphSpec& spec, CudnnOperations operations, CudnnPlan plan)
      : spec_(spec), operations_(std::move(operations)), plan_(std::move(plan)) {}

  int64_t workspace_bytes() const override { return own_bytes() + plan_.workspace_bytes(); }
  std::string engine() const override { return plan_.engine(); }

  void run(cudnnHandle_t handle, const AttentionPointers& pointers, std::byte* workspace) override {
    float scale = pointers.scale, one = 1.0f, minus_infinity = -std::numeric_limits<float>::infinity();
    auto addresses = addresses_of(spec_, pointers, &scale);
    addresses.emplace_back(kMinusInfinity, &minus_infinity);
    if (spec_.backward) {
      addresses.emplace_back(kOne, &one);
      addresses.emplace_back(kRowSums, workspace);
      if (!spec_.deterministic) addresses.emplace_back(kDQueryF32, workspace + aligned(row_sums_bytes(spec_)));
    }
    const cudnnStatus_t status = plan_.run(handle, addresses, workspace + own_bytes());
    if (status == CUDNN_STATUS_SUCCESS) return;
    fail(Kind::kDevice, cudnn_refusal(status, str("attention", spec_.backward ? " backward" : "")));
  }

 private:
  // Before cuDNN's own workspace.
  int64_t own_bytes() const { return aligned(row_sums_bytes(spec_)) + aligned(dquery_f32_bytes(spec_)); }

  AttentionGraphSpec spec_;
  CudnnOperations operations_;  // cuDNN does not say that a graph has copies
  CudnnPlan plan_;
};

}  // namespace

std::unique_ptr<AttentionGraph> AttentionGraph::build(const AttentionGraphSpec& spec, const CudnnTarget& target,
                                                      std::string* why_not) {
  *why_not = known_limit(spec, target);
  if (!why_not->empty()) return nullptr;
  CudnnOperations operations = spec.backward ? flash_backward(spec) : flash_forward(spec);
  CudnnDescriptor graph = operations.graph(target.handle);
  *why_not = operations.why_not();
  if (!why_not->empty()) return nullptr;
  auto plan = CudnnPlan::make(std::move(graph), target, engine_of(spec, target), why_not);
  if (!plan) return nullptr;
  why_not->clear();
  return std::make_unique<BuiltGraph>(spec, std::move(operations), std::move(*plan));
}

}  // namespace tokamak
