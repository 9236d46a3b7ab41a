// A GPU that only plans: for plans on a machine that has none. Taking memory or computing on it is a bug.
#pragma once

#include "backend/device.h"
#include "base/error.h"
#include "cuda/device.h"

namespace tokamak {

class PlanDevice final : public Device {
 public:
  std::byte* allocate(int64_t, MemoryKind) override { refuse(); }
  void release(std::byte*, int64_t, MemoryKind) noexcept override {}
  std::string description() const override { return "a GPU (plan only)"; }
  std::unique_ptr<Stream> make_stream(StreamPriority) override { refuse(); }
  std::unique_ptr<Event> make_event() override { refuse(); }
  bool uses_host_memory() const override { return false; }
  int64_t total_bytes() const override { return INT64_MAX; }
  int64_t available_bytes() const override { return INT64_MAX; }
  int64_t used_bytes() const override { return 0; }
  int64_t startup_bytes() const override { return CudaDevice::kStartupBytes; }
  int64_t reserve_bytes() const override { return CudaDevice::kReserveBytes; }
  int64_t peak_bytes() const override { return 0; }
  double peak_flops(DType) const override { return 0; }
  void copy_to_device(Stream&, const void*, Tensor) override { refuse(); }
  void copy_to_host(Stream&, Tensor, void*) override { refuse(); }

 private:
  [[noreturn]] static void refuse() {
    TOKAMAK_CHECK(false, "a planned device was used");
    __builtin_unreachable();
  }
};

}  // namespace tokamak
