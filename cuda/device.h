// A GPU as a device: memory from the CUDA runtime, non-blocking streams, copies from and to the host through pinned
// memory.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <vector>

#include "backend/device.h"
#include "backend/gpu_sizes.h"
#include "backend/observer.h"

namespace tokamak {

class CudaEvent final : public Event {
 public:
  CudaEvent();
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  void synchronize() override;
  cudaEvent_t handle() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaStream final : public Stream {
 public:
  explicit CudaStream(StreamPriority priority);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  cudaStream_t handle() const { return stream_; }

 protected:
  void do_record(Event& event) override;
  void do_wait(const Event& event) override;
  void do_synchronize() override;

 private:
  cudaStream_t stream_ = nullptr;
};

class CudaGraph final : public Graph {
 public:
  // Between these calls, this thread's work on the stream is captured.
  static void begin(CudaStream& stream);
  static std::unique_ptr<CudaGraph> end(CudaStream& stream);
  static void abandon(CudaStream& stream) noexcept;

  explicit CudaGraph(cudaGraphExec_t exec) : exec_(exec) {}
  ~CudaGraph() override;
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

 protected:
  void do_launch(Stream& stream) override;

 private:
  cudaGraphExec_t exec_;
};

class CudaTimestamp final : public Timestamp {
 public:
  CudaTimestamp();
  ~CudaTimestamp() override;
  CudaTimestamp(const CudaTimestamp&) = delete;
  CudaTimestamp& operator=(const CudaTimestamp&) = delete;

  void record(Stream& stream) override;
  std::optional<double> seconds_since(const Timestamp& earlier) const override;

 private:
  cudaEvent_t event_ = nullptr;
};

// For a stream that a CudaDevice created.
inline cudaStream_t handle(Stream& stream) { return static_cast<CudaStream&>(stream).handle(); }

// Pinned staging buffers for host-to-device copies, so that the caller need not wait: a ring, each buffer with the
// event of the copy that last read it.
class UploadRing {
 public:
  UploadRing() = default;
  ~UploadRing();
  UploadRing(const UploadRing&) = delete;
  UploadRing& operator=(const UploadRing&) = delete;

  void copy(CudaStream& stream, const void* host, void* device, int64_t bytes);

 private:
  struct Buffer {
    std::byte* memory = nullptr;
    CudaEvent read;
  };
  Buffer& next();

  std::vector<std::unique_ptr<Buffer>> buffers_;
  size_t at_ = 0;
};

// An allocator for communication buffers, if plain CUDA memory is not the best choice.
class ExchangedMemory {
 public:
  virtual ~ExchangedMemory() = default;
  virtual void* allocate(size_t bytes) = 0;         // null on failure
  virtual bool release(void* memory) noexcept = 0;  // false: not from this allocator
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index);

  std::byte* allocate(int64_t bytes, MemoryKind kind) override;
  void release(std::byte* memory, int64_t bytes, MemoryKind kind) noexcept override;

  // Registers `ranges` as an observer for the device's lifetime; null: none.
  void show_to(std::unique_ptr<Observer> ranges);

  // Uses `memory` for MemoryKind::kExchanged from now on, while it succeeds; null: the CUDA runtime.
  void exchange_through(ExchangedMemory* memory) { exchanged_ = memory; }

  std::string description() const override;
  std::unique_ptr<Event> make_event() override;
  std::unique_ptr<Timestamp> make_timestamp() override { return std::make_unique<CudaTimestamp>(); }
  bool can_record() const override { return true; }
  std::unique_ptr<Graph> record(Stream& stream, const std::function<void()>& work) override;
  bool uses_host_memory() const override { return false; }
  int64_t total_bytes() const override;
  int64_t available_bytes() const override;
  int64_t used_bytes() const override { return total_bytes() - available_bytes(); }  // slow: queries the driver
  int64_t startup_bytes() const override { return kGpuStartupBytes; }
  int64_t reserve_bytes() const override { return kGpuReserveBytes; }
  // A run allocates once and keeps its memory; lazily loaded code adds to it.
  int64_t peak_bytes() const override { return std::max(peak_, used_bytes()); }
  double peak_flops(DType dtype) const override;

 protected:
  std::unique_ptr<Stream> do_make_stream(StreamPriority priority) override;
  void do_copy_to_device(Stream& stream, const void* host, Tensor tensor) override;
  void do_copy_to_host(Stream& stream, Tensor tensor, void* host) override;

 private:
  std::byte* allocate_pinned(int64_t bytes) const;

  int index_;
  std::string name_;
  int64_t peak_ = 0;  // maximum after an allocation
  UploadRing uploads_;
  ExchangedMemory* exchanged_ = nullptr;
  std::unique_ptr<Observer> ranges_;
};

}  // namespace tokamak
