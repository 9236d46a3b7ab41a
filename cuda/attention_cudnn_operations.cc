#include "cuda/attention_cudnn_operations.h"

#include "base/strings.h"
#include "cuda/attention_cudnn_tensors.h"

namespace tokamak {
namespace {

constexpr int64_t kAlignment = 16;  // of every address, in bytes

}  // namespace

CudnnOperations::Tensor CudnnOperations::tensor(const GraphTensor& tensor) {
  CudnnDescriptor& made = tensors_.emplace_back(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, tensor.type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, tensor.dims)
      .set(CUDNN_ATTR_TENSOR_STRIDES, tensor.strides)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, tensor.id != 0 ? tensor.id : next_id_++)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  if (tensor.id == 0) made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  if (tensor.by_value) made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  check(made.finalize(), "a tensor");
  return &made;
}

void CudnnOperations::matmul(Tensor a, Tensor b, Tensor c) {
  CudnnDescriptor matmul(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  matmul.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finalize();
  CudnnDescriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, *a)
      .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, *b)
      .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, *c)
      .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, matmul);
  check(operation.finalize(), "a product");
}

void CudnnOperations::pointwise(cudnnPointwiseMode_t mode, const PointwiseArgs& args, Tensor y) {
  CudnnDescriptor pointwise(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  pointwise.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, &mode)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, args.compute);
  if (args.axis >= 0) pointwise.set(CUDNN_ATTR_POINTWISE_AXIS, args.axis);
  pointwise.finalize();
  CudnnDescriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *args.x)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *y);
  if (args.b != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *args.b);
  if (args.t != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *args.t);
  check(operation.finalize(), "a pointwise operation");
}

void CudnnOperations::reduce(cudnnReduceTensorOp_t mode, Tensor x, Tensor y) {
  CudnnDescriptor reduction(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  reduction.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, &mode)
      .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .finalize();
  CudnnDescriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, *x)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, *y)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, reduction);
  check(operation.finalize(), "a reduction");
}

void CudnnOperations::reshape(Tensor x, Tensor y) {
  CudnnDescriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, *x).set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, *y);
  check(operation.finalize(), "a reshape");
}

CudnnDescriptor CudnnOperations::graph(cudnnHandle_t handle) {
  CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
  if (handle != nullptr) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, &handle);
  check(graph.finalize(), "the operation graph");
  return graph;
}

void CudnnOperations::check(const CudnnDescriptor& made, const char* what) {
  if (!made.ok() && why_not_.empty()) why_not_ = cudnn_refusal(made.status(), what);
}

std::string cudnn_refusal(cudnnStatus_t status, const std::string& what) {
  std::string words(65536, '\0');
  cudnnGetLastErrorString(words.data(), words.size());
  words = one_line(words.c_str());
  return str("cuDNN: ", cudnnGetErrorString(status), " of ", what, words.empty() ? "" : ": ", words);
}

}  // namespace tokamak
