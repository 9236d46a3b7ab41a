// Caches one cuDNN plan per requested shape, or the reason why there is none.
#include "cuda/attention/cudnn.h"

#include <cudnn.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "backend/attended.h"
#include "base/error.h"
#include "base/log.h"
#include "cuda/attention/cudnn_call.h"
#include "cuda/attention/cudnn_graph.h"
#include "cuda/attention/cudnn_layout.h"
#include "cuda/attention/cudnn_library.h"
#include "cuda/check.h"

namespace tokamak {
namespace {

// cuDNN's deterministic backward holds a T x T matrix per head before Blackwell. The workspace limit: four f32 per
// element of the queries, plus this. Above the limit our own kernels run, which need less.
constexpr int64_t kRoomForScores = int64_t{2} << 30;

int64_t allowed_bytes(const AttentionGraphSpec& spec) {
  return spec.documents.tokens() * spec.heads.q_width() * 16 + kRoomForScores;
}

bool can_move_16_bytes(const Tensor& tensor) { return reinterpret_cast<uintptr_t>(tensor.data()) % 16 == 0; }

void check_cudnn(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS)
    fail(Kind::kDeviceFault, str("cuDNN: ", cudnnGetErrorString(status), " from ", call));
}

std::string text_of(const AttentionGraphSpec& spec) {
  const auto& [count, length, most_tokens] = spec.documents;
  return str("attention", spec.backward ? " backward" : "", ", ", count, " documents of ",
             most_tokens > 0 ? "up to " : "", length, " tokens, ", spec.heads.q_heads, "/", spec.heads.kv_heads,
             " heads of ", spec.heads.head_dim, spec.window > 0 ? str(", a window of ", spec.window) : "");
}

struct Plan {
  std::unique_ptr<AttentionGraph> graph;  // null if cuDNN has no plan
  int64_t bytes = 0;                      // bytes of workspace, cuDNN's part included
  std::string why_not;
};

// Documents, heads, backward, deterministic, window.
using Key = std::tuple<DocumentBatch, int64_t, int64_t, int64_t, bool, bool, int64_t>;

// Shared by all backends of a process on one device, since a plan takes half a second and tests create many backends.
// Never destroyed: libcudnn may be unloaded first at process exit.
struct Shared {
  CudnnTarget target;
  std::map<Key, Plan> plans;
};

class Cudnn final : public CudnnAttention {
 public:
  Cudnn(Shared& shared, bool deterministic) : shared_(shared), deterministic_(deterministic) {}

  bool supports(const Attention& args, int64_t room) override { return usable_plan(args, false, room) != nullptr; }
  bool supports(const AttentionBackward& args, int64_t room) override {
    return can_move_16_bytes(args.dout) && can_move_16_bytes(args.dqkv) && usable_plan(args, true, room) != nullptr;
  }

  // f32 compute is for tests, which also run bf16 in the same workspace.
  int64_t workspace_bytes(const Workload& workload) override {
    if (workload.max_length <= 0 || workload.tokens <= 0) return 0;
    planned_tokens_ = std::max(planned_tokens_, workload.tokens);
    int64_t bytes = 0;
    for (const int64_t window : workload.windows) {
      for (const bool backward : {false, true}) {
        const AttentionGraphSpec spec{.heads = workload.heads,
                                      .backward = backward,
                                      .deterministic = deterministic_,
                                      .window = effective_window(window, workload.max_length)};
        bytes = std::max(bytes, workspace_bytes(workload, spec));
      }
    }
    return bytes;
  }

  void run(cudaStream_t stream, const Attention& args, std::byte* workspace) override {
    call(stream, args, spec_of(args, false), workspace);
  }
  void run(cudaStream_t stream, const AttentionBackward& args, std::byte* workspace) override {
    call(stream, args, spec_of(args, true), workspace);
  }

 private:
  // Bytes that suffice for a pass, given without its documents, for every batch of the workload.
  int64_t workspace_bytes(const Workload& workload, AttentionGraphSpec spec) {
    int64_t bytes = 0;
    if (const auto uniform =
            uniform_documents(workload.tokens, workload.tokens / workload.max_length, workload.max_length)) {
      spec.documents = *uniform;
      bytes = plan(spec).bytes;
    }
    // Sized for the largest number of slots. On most GPUs the workspace does not depend on it; for Ampere's gradient,
    // and Hopper's deterministic one, it grows with the slots.
    spec.documents = ragged_documents(1, workload.max_length, planned_tokens_);
    for (spec.documents.count = most_slots(spec.documents); spec.documents.count > 0; spec.documents.count /= 2) {
      const Plan& most = plan(spec);
      bytes = std::max(bytes, most.bytes);
      if (most.graph != nullptr) break;
    }
    return bytes;
  }

  template <class Args>
  AttentionGraphSpec spec_of(const Args& args, bool backward) const {
    const int64_t tokens = args.qkv.dim(0), documents = args.cu_seqlens.count() - 1;
    const auto uniform = uniform_documents(tokens, documents, args.max_length);
    return {uniform ? *uniform : ragged_documents(documents, args.max_length, std::max(tokens, planned_tokens_)),
            args.heads, backward, deterministic_, effective_window(args.window, args.max_length)};
  }

  template <class Args>
  void call(cudaStream_t stream, const Args& args, const AttentionGraphSpec& spec, std::byte* workspace) {
    AttentionGraph* graph = plan(spec).graph.get();
    TOKAMAK_CHECK(graph != nullptr, "run() without supports()");
    check_cudnn(cudnnSetStream(shared_.target.handle, stream), "cudnnSetStream");
    call_graph(shared_.target.handle, stream, *graph, spec, args, workspace);
  }

  // The plan for a supported call; null if there is none, and the log reports the reason once.
  template <class Args>
  AttentionGraph* usable_plan(const Args& args, bool backward, int64_t room) {
    if (args.qkv.dtype() != DType::kBF16 || !can_move_16_bytes(args.qkv) || !can_move_16_bytes(args.out)) {
      return nullptr;
    }
    const AttentionGraphSpec spec = spec_of(args, backward);
    const Plan& found = plan(spec);
    std::string why_not = args.cap > 0 ? "its modifiers of scores exclude its masks" : found.why_not;
    if (why_not.empty() && found.bytes > room) {
      why_not = str("it needs ", found.bytes, " bytes of workspace, more than the ", room, " that were planned");
    }
    if (why_not.empty()) return found.graph.get();
    if (told_.insert(str(backward, why_not)).second) {
      log::info(text_of(spec), ": by our own kernels; cuDNN ", version_text(cudnnGetVersion()),
                "'s does not serve: ", why_not);
    }
    return nullptr;
  }

  // Built at the first request.
  const Plan& plan(const AttentionGraphSpec& spec) {
    const auto& [hq, hkv, d] = spec.heads;
    const Key key{spec.documents, hq, hkv, d, spec.backward, spec.deterministic, spec.window};
    const auto found = shared_.plans.find(key);
    if (found != shared_.plans.end()) return found->second;
    return shared_.plans.emplace(key, build(spec)).first->second;
  }

  Plan build(const AttentionGraphSpec& spec) const {
    const DocumentBatch& documents = spec.documents;
    if (!aligned_for_cudnn(spec.heads)) return {.why_not = str("it moves 8 features, not ", spec.heads.head_dim)};
    if (documents.ragged() && documents.count > most_slots(documents)) {
      return {.why_not = str("most of ", documents.count, " slots for documents would find nothing to do")};
    }
    CudnnTarget target = shared_.target;
    target.most_workspace_bytes = allowed_bytes(spec);
    Plan plan;
    plan.graph = AttentionGraph::build(spec, target, &plan.why_not);
    if (plan.graph == nullptr) {
      plan.why_not += str(" (within ", allowed_bytes(spec), " bytes of workspace; ", nvrtc_state(), ")");
    } else if (plan.graph->workspace_bytes() > allowed_bytes(spec)) {
      plan.why_not =
          str("it needs ", plan.graph->workspace_bytes(), " bytes of workspace, more than ", allowed_bytes(spec));
    } else {
      plan.bytes = CallParts(spec).graph + plan.graph->workspace_bytes();
      log::debug(text_of(spec), ": cuDNN ", version_text(cudnnGetVersion()), "'s ", plan.graph->engine(), ", ",
                 plan.bytes, " bytes of workspace");
    }
    if (!plan.why_not.empty()) {
      plan.graph = nullptr;
      if (spec.backward && deterministic_) plan.why_not += "; it may with runtime.deterministic: false";
    }
    return plan;
  }

  Shared& shared_;
  bool deterministic_;
  std::set<std::string> told_;
  int64_t planned_tokens_ = 0;
};

}  // namespace

std::unique_ptr<CudnnAttention> CudnnAttention::make(int device, bool deterministic, std::string* why_not) {
  if (!open_cudnn(why_not)) return nullptr;
  TOKAMAK_CUDA(cudaSetDevice(device));
  static auto& of_devices = *std::make_unique<std::map<int, Shared>>().release();
  CudnnTarget& target = of_devices[device].target;
  if (target.handle == nullptr) {
    if (const cudnnStatus_t status = cudnnCreate(&target.handle); status != CUDNN_STATUS_SUCCESS) {
      *why_not = str("cuDNN: ", cudnnGetErrorString(status), " from cudnnCreate");
      return nullptr;
    }
    int major = 0, minor = 0;
    TOKAMAK_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    TOKAMAK_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
    target.compute_capability = 10 * major + minor;
  }
  return std::make_unique<Cudnn>(of_devices[device], deterministic);
}

}  // namespace tokamak
