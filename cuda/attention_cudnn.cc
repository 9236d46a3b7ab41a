// Keeps one plan of cuDNN for each shape that was asked for, or the knowledge that there is none.
#include "cuda/attention_cudnn.h"

#include <cudnn.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "base/log.h"
#include "cuda/attention_cudnn_graph.h"
#include "cuda/attention_cudnn_layout.h"
#include "cuda/attention_cudnn_library.h"
#include "cuda/check.h"
#include "cuda/pack_lse.h"

namespace tokamak {
namespace {

constexpr int64_t kAlignment = 256;

// cuDNN's deterministic backward holds a matrix of T x T for each head before Blackwell. What it may take: four f32
// of each element of the queries, and this. Our own kernels do with less where it wants more.
constexpr int64_t kRoomForScores = int64_t{2} << 30;

int64_t allowed_bytes(const AttentionGraphSpec& spec) {
  return spec.documents.tokens() * spec.heads.q_width() * 16 + kRoomForScores;
}

// One document is packed as it lies.
int64_t packed_lse_bytes(const AttentionGraphSpec& spec) {
  if (!spec.backward || spec.documents.count == 1) return 0;
  const int64_t bytes = spec.documents.tokens() * spec.heads.q_heads * int64_t{sizeof(float)};
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool can_move_16_bytes(const Tensor& tensor) { return reinterpret_cast<uintptr_t>(tensor.data()) % 16 == 0; }

void check_cudnn(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS)
    fail(Kind::kDeviceFault, str("cuDNN: ", cudnnGetErrorString(status), " from ", call));
}

class Cudnn final : public CudnnAttention {
 public:
  Cudnn(int device, bool deterministic, cudnnHandle_t handle) : deterministic_(deterministic) {
    target_.handle = handle;
    int major = 0, minor = 0;
    TOKAMAK_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    TOKAMAK_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
    target_.compute_capability = 10 * major + minor;
  }
  ~Cudnn() override { cudnnDestroy(target_.handle); }
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  bool supports(const Attention& args) override { return usable_plan(args, false) != nullptr; }
  bool supports(const AttentionBackward& args) override {
    return can_move_16_bytes(args.dout) && can_move_16_bytes(args.dqkv) && usable_plan(args, true) != nullptr;
  }

  int64_t workspace_bytes(const Workload& workload) override {
    const auto documents = uniform_documents(
        workload.tokens, workload.tokens / std::max<int64_t>(workload.max_length, 1), workload.max_length);
    if (!documents) return 0;  // compute in f32 is for tests, which try bf16 in the same workspace
    int64_t bytes = 0;
    for (const bool backward : {false, true}) {
      const AttentionGraphSpec spec{*documents, workload.heads, backward, deterministic_};
      if (const AttentionGraph* graph = plan(spec)) {
        bytes = std::max(bytes, packed_lse_bytes(spec) + graph->workspace_bytes());
      }
    }
    promised_bytes_ = std::max(promised_bytes_, bytes);
    return bytes;
  }

  void run(cudaStream_t stream, const Attention& args, std::byte* workspace) override {
    AttentionGraph* graph = usable_plan(args, false);
    TOKAMAK_CHECK(graph != nullptr, "run() without supports()");
    check_cudnn(cudnnSetStream(target_.handle, stream), "cudnnSetStream");
    graph->run(target_.handle,
               {.qkv = args.qkv.data(), .out = args.out.data(), .lse = args.lse.data(), .scale = args.scale},
               workspace);
  }

  void run(cudaStream_t stream, const AttentionBackward& args, std::byte* workspace) override {
    AttentionGraph* graph = usable_plan(args, true);
    TOKAMAK_CHECK(graph != nullptr, "run() without supports()");
    check_cudnn(cudnnSetStream(target_.handle, stream), "cudnnSetStream");
    const AttentionGraphSpec spec = *spec_of(args, true);
    const int64_t packed_bytes = packed_lse_bytes(spec);
    auto* lse = args.lse.as<float>();
    if (packed_bytes > 0) {
      lse = reinterpret_cast<float*>(workspace);
      pack_lse(stream, args.lse.as<float>(), lse, spec.documents, spec.heads.q_heads);
    }
    graph->run(target_.handle,
               {.qkv = args.qkv.data(),
                .out = args.out.data(),
                .lse = lse,
                .dout = args.dout.data(),
                .dqkv = args.dqkv.data(),
                .scale = args.scale},
               workspace + packed_bytes);
  }

 private:
  using Key = std::tuple<UniformDocuments, int64_t, int64_t, int64_t, bool>;  // of the spec; deterministic_ is fixed

  template <class Args>
  std::optional<AttentionGraphSpec> spec_of(const Args& args, bool backward) const {
    const auto documents = uniform_documents(args.qkv.dim(0), args.cu_seqlens.count() - 1, args.max_length);
    if (!documents) return std::nullopt;
    return AttentionGraphSpec{*documents, args.heads, backward, deterministic_};
  }

  // The plan of a call that it can serve in the workspace that was promised; null if there is none.
  template <class Args>
  AttentionGraph* usable_plan(const Args& args, bool backward) {
    if (args.qkv.dtype() != DType::kBF16 || !can_move_16_bytes(args.qkv) || !can_move_16_bytes(args.out)) {
      return nullptr;
    }
    const auto spec = spec_of(args, backward);
    AttentionGraph* graph = spec ? plan(*spec) : nullptr;
    if (graph == nullptr || packed_lse_bytes(*spec) + graph->workspace_bytes() > promised_bytes_) return nullptr;
    return graph;
  }

  // Built at the first question; null if cuDNN refuses the shape, or wants too much memory for it.
  AttentionGraph* plan(const AttentionGraphSpec& spec) {
    if (!aligned_for_cudnn(spec.heads)) return nullptr;
    const Key key{spec.documents, spec.heads.q_heads, spec.heads.kv_heads, spec.heads.head_dim, spec.backward};
    const auto found = plans_.find(key);
    if (found != plans_.end()) return found->second.get();
    return plans_.emplace(key, build(spec)).first->second.get();
  }

  std::unique_ptr<AttentionGraph> build(const AttentionGraphSpec& spec) const {
    std::string why_not;
    auto graph = AttentionGraph::build(spec, target_, &why_not);
    if (graph != nullptr && graph->workspace_bytes() > allowed_bytes(spec)) {
      why_not = str("it needs ", graph->workspace_bytes(), " bytes of workspace, more than ", allowed_bytes(spec),
                    deterministic_ ? "; less with runtime.deterministic: false" : "");
      graph = nullptr;
    }
    const std::string what = str("attention", spec.backward ? " backward" : "", ", ", spec.documents.count,
                                 " documents of ", spec.documents.length, " tokens, ", spec.heads.q_heads, "/",
                                 spec.heads.kv_heads, " heads of ", spec.heads.head_dim);
    if (graph == nullptr) {
      log::info(what, ": by our own kernels; cuDNN's does not serve: ", why_not);
    } else {
      log::debug(what, ": cuDNN's ", graph->engine(), ", ", graph->workspace_bytes(), " bytes of workspace");
    }
    return graph;
  }

  bool deterministic_;
  CudnnTarget target_;
  std::map<Key, std::unique_ptr<AttentionGraph>> plans_;
  int64_t promised_bytes_ = 0;
};

}  // namespace

std::unique_ptr<CudnnAttention> CudnnAttention::make(int device, bool deterministic, std::string* why_not) {
  if (!open_cudnn(why_not)) return nullptr;
  TOKAMAK_CUDA(cudaSetDevice(device));
  cudnnHandle_t handle = nullptr;
  if (const cudnnStatus_t status = cudnnCreate(&handle); status != CUDNN_STATUS_SUCCESS) {
    *why_not = str("cuDNN: ", cudnnGetErrorString(status), " from cudnnCreate");
    return nullptr;
  }
  return std::make_unique<Cudnn>(device, deterministic, handle);
}

}  // namespace tokamak
