// The CPU as a device: memory from the heap, streams that run their work at once, events that are always reached.
#pragma once

#include "backend/device.h"
#include "base/clock.h"

namespace tokamak {

class CpuEvent final : public Event {
 public:
  void synchronize() override {}
};

class CpuStream final : public Stream {
 protected:
  void do_record(Event&) override {}
  void do_wait(const Event&) override {}
  void do_synchronize() override {}
};

class CpuTimestamp final : public Timestamp {
 public:
  void record(Stream&) override { seconds_ = now_seconds(); }
  std::optional<double> seconds_since(const Timestamp& earlier) const override {
    return seconds_ - static_cast<const CpuTimestamp&>(earlier).seconds_;
  }

 private:
  double seconds_ = 0;
};

class CpuDevice : public Device {
 public:
  std::byte* allocate(int64_t bytes, MemoryKind kind) override;
  void release(std::byte* memory, int64_t bytes, MemoryKind kind) noexcept override;

  std::string description() const override;
  std::unique_ptr<Event> make_event() override;
  std::unique_ptr<Timestamp> make_timestamp() override { return std::make_unique<CpuTimestamp>(); }
  bool uses_host_memory() const override { return true; }
  int64_t total_bytes() const override;
  int64_t available_bytes() const override;
  int64_t used_bytes() const override;
  int64_t peak_bytes() const override;
  double peak_flops(DType) const override { return 0; }

 protected:
  std::unique_ptr<Stream> do_make_stream(StreamPriority priority) override;
  void do_copy_to_device(Stream& stream, const void* host, Tensor tensor) override;
  void do_copy_to_host(Stream& stream, Tensor tensor, void* host) override;
};

}  // namespace tokamak
