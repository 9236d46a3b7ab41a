// An operation graph in the making, by cuDNN's own graph API: tensors, and operations on them in the order in which
// they are named.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "cuda/attention_cudnn_descriptor.h"

namespace tokamak {

struct GraphTensor {
  std::vector<int64_t> dims, strides;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int64_t id = 0;         // under which a call gives its address; 0: it stays inside the graph
  bool by_value = false;  // its address is on the host
};

class CudnnOperations {
 public:
  using Tensor = const CudnnDescriptor*;
  struct PointwiseArgs {
    Tensor x = nullptr, b = nullptr, t = nullptr;  // of mode (x), mode (x, b), mode (x, b, t)
    int64_t axis = -1;                             // of CUDNN_POINTWISE_GEN_INDEX
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  };

  // Tensors inside the graph get ids from here on.
  explicit CudnnOperations(int64_t first_inner_id) : next_id_(first_inner_id) {}

  Tensor tensor(const GraphTensor& tensor);

  // Sums, products and reductions are in f32.
  void matmul(Tensor a, Tensor b, Tensor c);
  void pointwise(cudnnPointwiseMode_t mode, const PointwiseArgs& args, Tensor y);
  void reduce(cudnnReduceTensorOp_t mode, Tensor x, Tensor y);  // along each dimension that is 1 in y
  void reshape(Tensor x, Tensor y);

  // Of all operations so far, finalized. A null handle: for a GPU that is described to the heuristics.
  CudnnDescriptor graph(cudnnHandle_t handle);

  // What cuDNN had against the first tensor, operation or graph that it did not take; empty if there was none.
  const std::string& why_not() const { return why_not_; }

 private:
  void check(const CudnnDescriptor& made, const char* what);

  int64_t next_id_;
  std::deque<CudnnDescriptor> tensors_;  // stay where they are
  std::vector<CudnnDescriptor> operations_;
  std::string why_not_;
};

// "cuDNN: STATUS of WHAT: its own words", in one line.
std::string cudnn_refusal(cudnnStatus_t status, const std::string& what);

}  // namespace tokamak
