#include "model/weight_gradient_stream.h"

#include <algorithm>

namespace tokamak {

namespace {

bool share_memory(const Tensor& x, const Tensor& y) {
  const auto* a = static_cast<const std::byte*>(x.data());
  const auto* b = static_cast<const std::byte*>(y.data());
  return a < b + y.bytes() && b < a + x.bytes();
}

}  // namespace

void WeightGradientStream::commit(Device& device) {
  stream_ = device.make_stream({.name = "weight gradients", .use = StreamUse::kGemms});
  operands_ready_ = device.make_event();
  for (std::unique_ptr<Event>& event : done_) event = device.make_event();
}

void WeightGradientStream::begin_pass() {
  waited_ = enqueued_;
  reads_.clear();
}

void WeightGradientStream::enqueue(Ops& ops, Stream& compute, const Gemm& gemm) {
  if (stream_ == nullptr) return ops.gemm(compute, gemm);
  compute.record(*operands_ready_);
  stream_->wait(*operands_ready_);
  ops.gemm(*stream_, gemm);
  stream_->record(*done_[static_cast<size_t>(enqueued_) % kEvents]);
  ++enqueued_;
  for (const Tensor& operand : {gemm.a, gemm.b}) reads_.push_back({operand, enqueued_});
}

void WeightGradientStream::wait_for_readers(Stream& compute, Tensor tensor) {
  int64_t last = 0;
  for (const Read& read : reads_) {
    if (share_memory(read.tensor, tensor)) last = std::max(last, read.gemm);
  }
  wait_for(compute, last);
}

void WeightGradientStream::join(Stream& compute) { wait_for(compute, enqueued_); }

// The stream runs its GEMMs in order, so this waits for those before, too.
void WeightGradientStream::wait_for(Stream& compute, int64_t gemm) {
  if (gemm <= waited_) return;
  compute.wait(*done_[static_cast<size_t>(gemm - 1) % kEvents]);
  waited_ = gemm;
  std::erase_if(reads_, [gemm](const Read& read) { return read.gemm <= gemm; });
}

}  // namespace tokamak
