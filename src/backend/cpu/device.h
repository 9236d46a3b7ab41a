// The CPU as a device. Memory comes from the heap. Streams of normal priority run their work at once, in the calling
// thread; streams of high priority have a thread each. Streams outlive the events and timestamps recorded on them.
#pragma once

#include <atomic>

#include "backend/cpu/work_queue.h"
#include "backend/device.h"
#include "base/clock.h"
#include "base/process.h"

namespace tokamak {

// A position in a stream's work. A stream without a queue runs its work at once, so it is past all of its points.
struct CpuPoint {
  WorkQueue* queue = nullptr;
  int64_t position = 0;

  bool reached() const { return queue == nullptr || queue->reached(position); }
  void wait() const {
    if (queue != nullptr) queue->wait(position);
  }
};

class CpuEvent final : public Event {
 public:
  void synchronize() override { point.wait(); }
  CpuPoint point;
};

class CpuStream final : public Stream {
 public:
  CpuStream(StreamPriority priority, WorkQueues& queues);
  ~CpuStream() override;
  void run_on_host(std::function<void()> work) override;
  bool has_own_thread() const override { return queue_ != nullptr; }
  CpuPoint point() const { return queue_ == nullptr ? CpuPoint{} : CpuPoint{queue_.get(), queue_->pushed()}; }

 protected:
  void do_record(Event& event) override { static_cast<CpuEvent&>(event).point = point(); }
  void do_wait(const Event& event) override;
  bool blocks_host(const Event& event) const override;
  void do_synchronize() override { point().wait(); }

 private:
  WorkQueues& queues_;                // of the device
  std::unique_ptr<WorkQueue> queue_;  // absent: the calling thread runs the work
};

class CpuTimestamp final : public Timestamp {
 public:
  ~CpuTimestamp() override;
  void record(Stream& stream) override;
  std::optional<double> seconds_since(const Timestamp& earlier) const override;

 private:
  static constexpr double kNotReached = -1;
  std::atomic<double> seconds_ = kNotReached;
  CpuPoint point_;
};

class CpuDevice : public Device {
 public:
  std::byte* allocate(int64_t bytes, MemoryKind kind) override;
  void release(std::byte* memory, int64_t bytes,
               MemoryKind kind) noexcept override;  // waits for all streams, as CUDA does

  std::string description() const override;
  std::unique_ptr<Event> make_event() override { return std::make_unique<CpuEvent>(); }
  std::unique_ptr<Timestamp> make_timestamp() override { return std::make_unique<CpuTimestamp>(); }
  bool uses_host_memory() const override { return true; }
  int64_t total_bytes() const override { return total_memory_bytes(); }
  int64_t available_bytes() const override { return available_memory_bytes(); }
  int64_t used_bytes() const override { return resident_bytes(); }
  int64_t peak_bytes() const override { return peak_resident_bytes(); }
  double peak_flops(DType) const override { return 0; }

 protected:
  std::unique_ptr<Stream> do_make_stream(StreamPriority priority) override {
    return std::make_unique<CpuStream>(priority, queues_);
  }
  void do_copy_to_device(Stream& stream, const void* host, Tensor tensor) override;
  void do_copy_to_host(Stream& stream, Tensor tensor, void* host) override;
  void finish_streams() noexcept { queues_.finish(); }  // before memory is released

 private:
  WorkQueues queues_;
};

}  // namespace tokamak
