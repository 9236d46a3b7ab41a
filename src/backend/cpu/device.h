// The CPU as a device: memory from the heap, streams that run their work at once, events that are always reached.
#pragma once

#include "backend/device.h"

namespace tokamak {

class CpuEvent final : public Event {
 public:
  void synchronize() override {}
};

class CpuStream final : public Stream {
 public:
  void record(Event&) override {}
  void wait(const Event&) override {}
  void synchronize() override {}
};

class CpuDevice : public Device {
 public:
  std::byte* allocate(int64_t bytes, MemoryKind kind) override;
  void release(std::byte* memory, int64_t bytes, MemoryKind kind) noexcept override;

  std::string description() const override;
  std::unique_ptr<Stream> make_stream(StreamPriority priority = StreamPriority::kNormal) override;
  std::unique_ptr<Event> make_event() override;
  bool uses_host_memory() const override { return true; }
  int64_t total_bytes() const override;
  int64_t available_bytes() const override;
  int64_t used_bytes() const override;
  int64_t peak_bytes() const override;
  double peak_flops(DType) const override { return 0; }
  void copy_to_device(Stream& stream, const void* host, Tensor tensor) override;
  void copy_to_host(Stream& stream, Tensor tensor, void* host) override;
};

}  // namespace tokamak
