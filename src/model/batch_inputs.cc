#include "model/batch_inputs.h"

#include "base/error.h"

namespace tokamak {

BatchInputs::BatchInputs(int64_t max_tokens, MemoryPlan& plan) {
  const Shape tokens{max_tokens};
  for (Slots& slots : slots_) {
    slots.tokens = plan.add("batch/tokens", DType::kI32, tokens);
    slots.targets = plan.add("batch/targets", DType::kI32, tokens);
    slots.positions = plan.add("batch/positions", DType::kI32, tokens);
    slots.cu_seqlens = plan.add("batch/cu_seqlens", DType::kI32, Shape{max_tokens + 1});
    slots.rows = plan.add("batch/rows", DType::kI32, tokens);
  }
}

void BatchInputs::commit(const Arena& arena, Device& device) {
  device_ = &device;
  copies_ = device.make_stream({.name = "copies"});
  for (int i = 0; i < kBuffers; ++i) {
    const Slots& slots = slots_[i];
    buffers_[i] = {{.tokens = arena[slots.tokens],
                    .targets = arena[slots.targets],
                    .positions = arena[slots.positions],
                    .cu_seqlens = arena[slots.cu_seqlens],
                    .rows = arena[slots.rows]},
                   device.make_event(),
                   device.make_event()};
  }
}

DeviceBatch BatchInputs::upload(Stream& compute, const TokenBatch& batch) {
  TOKAMAK_CHECK(batch.positions.size() == batch.tokens.size() && !batch.cu_seqlens.empty());
  compute.record(*buffers_[at_].left);  // all work on the latest batch is enqueued by now
  at_ = (at_ + 1) % kBuffers;
  const Buffer& buffer = buffers_[at_];
  copies_->wait(*buffer.left);
  const auto send = [&](std::span<const int32_t> values, Tensor whole) {
    const Tensor tensor = whole.rows(0, std::ssize(values));
    if (!values.empty()) device_->copy_to_device(*copies_, values.data(), tensor);
    return tensor;
  };
  const DeviceBatch sent = {.tokens = send(batch.tokens, buffer.whole.tokens),
                            .targets = send(batch.targets, buffer.whole.targets),
                            .positions = send(batch.positions, buffer.whole.positions),
                            .cu_seqlens = send(batch.cu_seqlens, buffer.whole.cu_seqlens),
                            .rows = send(batch.rows, buffer.whole.rows)};
  copies_->record(*buffer.arrived);
  compute.wait(*buffer.arrived);
  return sent;
}

}  // namespace tokamak
