// From an operation graph to what runs it: the engines that cuDNN's heuristics propose for it, best first, and a plan
// of the first that takes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cuda/attention_cudnn_descriptor.h"
#include "cuda/attention_cudnn_graph.h"

namespace tokamak {

// An engine instead of the heuristics' choice.
struct CudnnEngineChoice {
  int64_t engine = 0;
  std::vector<std::pair<cudnnBackendKnobType_t, int64_t>> knobs;
};

class CudnnPlan {
 public:
  // Nothing if no engine takes the graph; then `why_not` is cuDNN's reason. Without a handle there is no plan to run,
  // but all else is known.
  static std::optional<CudnnPlan> make(CudnnDescriptor graph, const CudnnTarget& target,
                                       const std::optional<CudnnEngineChoice>& choice, std::string* why_not);

  int64_t workspace_bytes() const { return workspace_bytes_; }
  std::string engine() const;  // "eng5_k14=2_k24=31": number and knobs

  // Enqueues. Addresses by tensor's id; those of values are read before it returns.
  cudnnStatus_t run(cudnnHandle_t handle, const std::vector<std::pair<int64_t, void*>>& addresses,
                    void* workspace) const;

 private:
  CudnnPlan(CudnnDescriptor graph, CudnnDescriptor config, CudnnDescriptor plan, int64_t workspace_bytes)
      : graph_(std::move(graph)),
        config_(std::move(config)),
        plan_(std::move(plan)),
        workspace_bytes_(workspace_bytes) {}

  CudnnDescriptor graph_, config_, plan_;
  int64_t workspace_bytes_;
};

}  // namespace tokamak
