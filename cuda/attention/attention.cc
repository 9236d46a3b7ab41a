// Attention forward and backward: cuDNN if available, enabled and supported for the case; else our own kernels.
#include "cuda/attention/native.h"
#include "cuda/cuda_ops.h"
#include "cuda/device.h"

namespace tokamak {

int64_t attention_backward_scratch(const Workload& workload) {
  return workload.heads.q_heads * workload.tokens * static_cast<int64_t>(sizeof(float));  // delta
}

void CudaOps::do_attention(Stream& stream, const Attention& args) {
  if (args.qkv.dim(0) == 0) return;
  if (cudnn_ != nullptr && options_.attention != AttentionKind::kNative && cudnn_->supports(args, scratch_bytes())) {
    return cudnn_->run(handle(stream), args, scratch(0));
  }
  const bool fast = flash::on_tensor_cores(args.qkv.dtype(), args.heads.head_dim);
  fast ? flash::forward_on_tensor_cores(handle(stream), args) : flash::forward_generic(handle(stream), args);
}

void CudaOps::do_attention_backward(Stream& stream, const AttentionBackward& args) {
  if (args.qkv.dim(0) == 0) return;
  if (cudnn_ != nullptr && options_.attention != AttentionKind::kNative && cudnn_->supports(args, scratch_bytes())) {
    return cudnn_->run(handle(stream), args, scratch(0));
  }
  auto* delta = reinterpret_cast<float*>(scratch(args.lse.bytes()));  // delta has the shape of lse
  flash::sum_delta(handle(stream), args, delta);
  if (flash::on_tensor_cores(args.qkv.dtype(), args.heads.head_dim)) {
    flash::dkv_on_tensor_cores(handle(stream), args, delta);
    flash::dq_on_tensor_cores(handle(stream), args, delta);
  } else {
    flash::backward_generic(handle(stream), args, delta);
  }
}

}  // namespace tokamak
